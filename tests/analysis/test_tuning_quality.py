"""What a tuning record says of the cost model: ranks, loss of the first choice."""

from __future__ import annotations

from math import isnan

import pytest

from tilec.analysis.tuning_quality import model_quality, quality_totals
from tilec.ir.expr import Const
from tilec.ir.plan import Variant
from tilec.scheduler.tuning.decision import Decision
from tilec.scheduler.tuning.record import Entry, Record, Trial
from tilec.scheduler.tuning.signature import Signature


def entry(name: str, times: list[tuple[int, int | None]]) -> Entry:
    """A group whose candidates were predicted and measured so."""
    decided = (Decision({}, (Variant(Const(True), ("dram",), {}, {}, ""),)),)
    trials = tuple(Trial(decided, measured, predicted) for predicted, measured in times)
    return Entry(Signature(name, name, (), (name,)), {"device": "d"}, trials, 0)


RECORD = (
    Record()
    .merged(
        entry("long", [(100, 300), (110, 200), (130, 400), (120, None), (100, 300)]),
    )
    .merged(entry("short", [(10, 20), (20, 40), (30, 60)]))
)
"""Three candidates that were measured, one of them twice the same, one that failed; three in the right order."""


@pytest.mark.feature("W20")
def test_ranks_and_loss_of_every_group() -> None:
    long, short = model_quality(RECORD)
    assert (long.group, long.candidates, long.correlation, long.loss) == ("long long", 3, pytest.approx(0.5), 0.5)
    assert (short.correlation, short.loss, short.ratio) == (pytest.approx(1.0), 0.0, 0.5)
    totals = quality_totals([long, short])
    assert totals["correlation"] == pytest.approx(0.75)
    assert (totals["mean_loss"], totals["largest_loss"], totals["best_taken"]) == (0.25, 0.5, 0.5)
    assert totals["loss_of_time"] == pytest.approx(320 / 220 - 1)


def test_records_without_predictions_say_nothing() -> None:
    assert model_quality(Record().merged(entry("old", [(0, 3), (0, 2)]))) == ()
    assert isnan(quality_totals([])["correlation"])
