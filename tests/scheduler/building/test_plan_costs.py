"""What plans say that groups ask of their levels: counted on their programs."""

from __future__ import annotations

import pytest

from tests.scheduler.graphs import make_graph
from tilec.ir.expr import Const
from tilec.lower.counts.transactions import transactions
from tilec.lower.lowering import lower
from tilec.scheduler import schedule
from tilec.spec.resolve import resolve_device

E = {"m": 33, "n": 20}


@pytest.mark.feature("W22", "W50")
def test_transactions_are_counted_beside_raw_bytes() -> None:
    texts = [("h[m, n] = x[m, n] + 1.0", E), ("s[m] = sum(n, h[m, n])", E), ("y[n, m] = h[m, n] / s[m]", E)]
    plan = schedule(make_graph({"x": (33, 20)}, texts, ["y"]), resolve_device("a100"))
    assert [level.transaction for level in plan.levels] == [32, 32, 128, 4]
    for group in plan.groups:
        counted = transactions(lower(group, group.variants[0], plan))
        assert group.cost.transactions == {level: Const(n) for level, n in counted.items()}
        raw = group.cost.read["smem"].value + group.cost.written["smem"].value  # type: ignore[union-attr]
        assert counted["dram"] * 32 >= raw > 0
