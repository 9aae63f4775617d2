"""Half precision stays f32 inside a group where it is computed, unless it is compared with what is rounded."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scheduler.graphs import make_graph
from scheduler.running import device, illegal, run_plan, tiny
from scheduler.tiling_problems import tiling_problem

from tilec.ir.codec import plan_to_json
from tilec.ir.expr import Const
from tilec.ir.graph import Graph, Tensor
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Plan
from tilec.ir.text import parse_tensor
from tilec.ir.types import numpy_dtype
from tilec.lower.counts.footprint import footprint
from tilec.lower.lowering import lower
from tilec.machine import execute
from tilec.scheduler import schedule
from tilec.scheduler.analysis.promote_halves import wide_inside
from tilec.scheduler.graph_passes.fuse_registers import fuse_registers
from tilec.scheduler.target_model import target_model_of
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import ScheduleOptions

BOTH = frozenset({"f16", "bf16"})
WHOLE = ScheduleOptions(passes=("inline_scalars",))


@pytest.mark.parametrize(
    ("texts", "leaving", "expected"),
    [
        (["P[s] = X[s] * 2.0", "O[s] = P[s] + 1.0"], "O", "P"),
        (["P[s] = X[s] * 2.0", "O[s] = P[s] + 1.0"], "PO", ""),
        (["P[s] = where(X[s] > 0.0, X[s], 0.0)", "O[s] = P[s] + 1.0"], "O", ""),
        (["P[s] = f16(W[s] * 2.0)", "O[s] = P[s] + 1.0"], "O", ""),
        (["P[s] = X[s] * 2.0", "Q[s] = maximum(P[s], 0.0)", "O[s] = Q[s] + 1.0"], "O", "PQ"),
        (["P[s] = X[s] * 2.0", "M[s] = max(t, P[t])", "O[s] = where(P[s] == M[s], 1.0, 0.0)"], "O", "PM"),
        (["P[s] = X[s] * 2.0", "M[s] = max(t, P[t])", "O[s] = where(P[s] == M[s], 1.0, 0.0)"], "OM", ""),
        (["P[s] = X[s] * 2.0", "N[s] = max(t, P[t])", "M[s] = max(t, N[t])", "O[s] = P[s] - M[s]"], "ON", ""),
        (["P[s] = W[s] * 2.0", "O[s] = P[s] + 1.0"], "O", ""),
    ],
)
def test_what_is_held_as_f32(texts: Sequence[str], leaving: str, expected: str) -> None:
    exprs = [parse_tensor(text, {"s": 4, "t": 4}) for text in texts]
    single = {"W"} | ({"P"} if texts[0] == "P[s] = W[s] * 2.0" else set())
    tensors = {t: Tensor((Const(4),), "f32" if t in single else "f16") for t in "XWPQMNO"}
    assert wide_inside(exprs, leaving, tensors, BOTH) == tuple(expected)
    assert wide_inside(exprs, leaving, tensors, frozenset({"bf16"})) == ()


def chain(ttype: str) -> Graph:
    """A product, its square and the sums of the rows; the product's values pass 65504 on the way."""
    nodes = [
        ("p[s, m] = sum(k, x[s, k] * w[k, m])", {"s": 12, "m": 20, "k": 16}),
        ("q[s, m] = p[s, m] * p[s, m]", {"s": 12, "m": 20}),
        ("y[s, m] = q[s, m] / 4096.0", {"s": 12, "m": 20}),
    ]
    return make_graph({"x": (12, 16), "w": (16, 20)}, nodes, ["y"], ttypes={"x": ttype, "w": ttype})


def with_halves(spec: DeviceSpec, accumulator: str = "f16") -> DeviceSpec:
    """The device with a unit that takes f16 and adds up in a type."""
    unit = spec.compute[0].model_copy(update={"name": "half", "inputs": ("f16", "f16"), "accumulator": accumulator})
    return spec.model_copy(update={"compute": (*spec.compute, unit)})


def wide(plan: Plan) -> list[tuple[str, ...]]:
    """What each group makes and holds as f32."""
    return [
        tuple(n.name for n in group.nodes if any(n.name in of for of in group.variants[0].held.values()))
        for group in plan.groups
    ]


@pytest.mark.parametrize("spec", [tiny(), tiny("explicit", 64)])
def test_a_plan_rounds_where_a_group_ends(spec: DeviceSpec) -> None:
    graph = chain("f16")
    plan = schedule(graph, spec, WHOLE)
    assert illegal(plan) == []
    assert wide(plan) == [("p", "q")]
    feeds = {"x": np.full((12, 16), 5.0, np.float16), "w": np.full((16, 20), 5.0, np.float16)}
    assert np.all(run_plan(plan, feeds)["y"] == np.float16(400.0 * 400.0 / 4096.0))
    apart = schedule(graph, spec, WHOLE.model_copy(update={"fusion": "none"}))
    assert wide(apart) == [(), (), ()]
    assert np.all(np.isinf(run_plan(apart, feeds)["y"]))


@pytest.mark.parametrize("ttype", ["f16", "bf16"])
def test_planned_bytes_are_those_of_the_program(ttype: str) -> None:
    graph = chain(ttype)
    plan = schedule(graph, tiny("explicit", 64), WHOLE)
    (group,) = plan.groups
    program = lower(group, group.variants[0], plan)
    arrays = {t: np.ones([int(e.value) for e in graph.tensors[t].shape]) for t in "xw"}  # type: ignore[union-attr]
    result = execute(program, {t: array.astype(numpy_dtype(ttype)) for t, array in arrays.items()})
    assert group.cost.footprint == footprint(program) == {level: Const(n) for level, n in result.peak.items()}
    assert group.cost.read == {level: Const(moved.read) for level, moved in result.moved.items()}


def test_a_device_with_units_that_add_up_halves_keeps_them() -> None:
    assert target_model_of(tiny()).widened == BOTH
    assert target_model_of(with_halves(tiny())).widened == {"bf16"}
    assert target_model_of(with_halves(tiny(), "f32")).widened == BOTH, "it adds up in f32"
    assert target_model_of(device("a100")).widened == BOTH, "units of matrices take halves, vectors do not"
    assert target_model_of(device("h100")).widened == BOTH
    assert wide(schedule(chain("f16"), with_halves(tiny()), WHOLE)) == [()]
    assert wide(schedule(chain("bf16"), with_halves(tiny()), WHOLE)) == [("p", "q")]


def test_the_search_counts_what_the_group_will_hold() -> None:
    graph = chain("f16")
    problem = tiling_problem(fuse_registers(graph).parts, [], graph, target_model_of(tiny()), Candidates({}), ("y",))
    assert {t: problem.storage.bytes_of(t) for t in "xwpqy"} == {"x": 2, "w": 2, "p": 4, "q": 4, "y": 2}
    leaving = replace(problem.storage, group=replace(problem.group, outputs=("p", "y")))
    assert {t: leaving.bytes_of(t) for t in "pqy"} == {"p": 2, "q": 4, "y": 2}


def test_plans_of_other_types_say_nothing_of_it() -> None:
    plan = schedule(chain("f32"), tiny(), WHOLE)
    assert wide(plan) == [()]
    assert all("held" not in variant for group in plan_to_json(plan)["groups"] for variant in group["variants"])
    assert "held" in plan_to_json(schedule(chain("f16"), tiny(), WHOLE))["groups"][0]["variants"][0]
