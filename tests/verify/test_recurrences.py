"""Plans of recurrences with open sizes, evaluated step by step, mean what onnxruntime computes, at every length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilec.importer import import_model
from tilec.ir.bind_plan import bind_plan
from tilec.ir.plan import Plan
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device
from tilec.verify.compare import compare
from tilec.verify.inputs import Draw, random_inputs
from tilec.verify.runners import Reference
from tilec.verify.tolerance import tolerances
from tilec.verify.verdict import reconsidered
from tilec.verify.whole_plan import WholePlan
from verify.random_recurrences import recurrence

SIZES = ((1, 1), (2, 3), (7, 2), (33, 5))


def distances(plan: Plan, model: Path, reference: Reference, t: int, n: int) -> list[str]:
    """What differs at t steps of n sequences, and not because what it is computed from was rounded: onnxruntime's gates
    are approximations, and where one is almost open, what passes it is all error."""
    sizes = {symbol: {"t": t, "n": n}[symbol] for symbol in plan.symbols}
    bound = bind_plan(plan, sizes)
    feeds = random_inputs(bound, Draw(t, 3.0 if t % 2 else 0.0))
    if "lengths" in feeds:
        feeds["lengths"] = np.random.default_rng(t).integers(1, t + 1, feeds["lengths"].shape).astype(np.int32)
    expected, actual = reference.run(feeds), WholePlan(bound, model.parent).outputs(feeds)
    allowed = tolerances(bound)
    compared = [compare(name, actual[name], expected[name], allowed[name]) for name in expected]
    if not all(each.passed for each in compared):
        compared = reconsidered(compared, bound, model.parent, model, feeds, actual, expected)
    return [f"{each.output}: {each.reason}{each.size()} at t={t}, n={n}" for each in compared if not each.passed]


@pytest.mark.parametrize("seed", [0, 4, 148, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(60, 120))])
def test_a_recurrence_means_what_onnxruntime_computes(tmp_path: Path, seed: int) -> None:
    model = recurrence(seed, tmp_path / "model.onnx")
    imported = import_model(model)
    if imported.owned_file:
        (tmp_path / imported.owned_file).write_bytes(b"".join(imported.weights))
    plan = schedule(imported.graph, resolve_device("avx2"), ScheduleOptions())
    assert {call.loop for call in plan.calls} == {"start", "end"}
    reference = Reference(model, threads=1)
    assert [each for t, n in SIZES for each in distances(plan, model, reference, t, n)] == []
