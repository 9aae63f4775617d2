"""Groups whose reductions share a rescaled loop: chosen where rows are too long for a level, left alone elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.codegen.cpu.running import AVX2, Batch, close
from tests.scheduler.graphs import make_graph
from tests.scheduler.rescaled import normalized
from tests.scheduler.running import Arrays, device, illegal, problem_of, run_plan, tiny
from tilec.importer import import_model
from tilec.ir.expr import Const, operands
from tilec.ir.graph import Graph
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Group, Plan
from tilec.lower.checks.check_plan import overflows, problems
from tilec.lower.lowering import lower
from tilec.scheduler.fusion import online_reductions
from tilec.scheduler.schedule import schedule
from tilec.scheduler.target_model import target_model_of
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import ScheduleOptions

FULL = ScheduleOptions(fusion="full")


def attention(
    rows: int | str, keys: int, width: int = 4, scores: str = "S[m, n] * 0.5 + M[m, n]", ttype: str = "f32"
) -> Graph:
    extents = {"m": rows, "n": keys, "k": width, "d": width}
    texts = [
        "S[m, n] = sum(k, Q[m, k] * K[n, k])",
        f"P[m, n] = {scores}",
        "X[m] = max(n, P[m, n])",
        "E[m, n] = exp(P[m, n] - X[m])",
        "Z[m] = sum(n, E[m, n])",
        "R[m, n] = E[m, n] / Z[m]",
        "O[m, d] = sum(n, R[m, n] * V[n, d])",
    ]
    inputs: dict[str, Sequence[int | str]] = {"Q": (rows, width), "K": (keys, width), "V": (keys, width)}
    if "M[" in scores:
        inputs["M"] = (rows, keys)
    symbols = [rows] if isinstance(rows, str) else []
    types = dict.fromkeys("QKVMSPXEZRO", ttype)
    return make_graph(inputs, [(text, extents) for text in texts], ["O"], ttypes=types, symbols=symbols)


def arrays_of(graph: Graph, seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    shapes = {
        p.tensor: [int(e.value) for e in graph.tensors[p.tensor].shape if isinstance(e, Const)] for p in graph.inputs
    }
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def exact_attention(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    q, k, v, m = (arrays[name].astype(np.float64) for name in "QKVM")
    with np.errstate(all="ignore"):
        scores = q @ k.T * 0.5 + m
        weights = np.exp(scores - scores.max(1, keepdims=True))
        return np.asarray(weights / weights.sum(1, keepdims=True) @ v)


def planned(graph: Graph, spec: DeviceSpec, options: ScheduleOptions = FULL) -> Plan:
    """A plan that can be lowered and fits, with a reason for every edge that is not connected."""
    plan = schedule(graph, spec, options)
    refused = {r.edge for r in plan.refusals}
    for group in plan.groups:
        assert problems(group, group.variants[0], plan) == ()
        assert overflows(lower(group, group.variants[0], plan)) == ()
    made = {node.name: group.name for group in plan.groups for node in group.nodes}
    for group in plan.groups:
        for node in group.nodes:
            for tensor in operands(node.expr):
                if tensor in made:
                    edge = f"{tensor}->{node.name}"
                    assert edge in (group.connect if made[tensor] == group.name else refused), edge
    return plan


def shared(group: Group) -> tuple[str, ...]:
    return tuple(group.variants[0].shared)


def scores_stay(plan: Plan, keys: int) -> bool:
    """Whether no tensor with a row of keys is written to the lowest level."""
    return all(plan.tensors[name].shape[-1] != Const(keys) for group in plan.groups for name in group.outputs)


@pytest.mark.feature("W09", "W16")
def test_long_attention_is_one_group_on_a_gpu() -> None:
    plan = planned(attention(65_536, 65_536, 64, "S[m, n] * 0.125"), device("a100"))
    (group,) = plan.groups
    assert shared(group) == ("X", "Z", "O")
    assert scores_stay(plan, 65_536)
    assert set(group.connect.values()) <= {"smem", "reg"}
    assert not plan.refusals
    (tile,) = group.variants[0].tiles["smem"].values()
    whole, tasks = 65_536 * 64 * 4, -(-65_536 // tile["m"])
    read = group.cost.read["smem"]
    assert isinstance(read, Const)
    keys_and_values = tasks * 2 * whole
    assert keys_and_values + whole <= read.value <= keys_and_values + whole + tasks * 64 * 4 * tile["m"]
    held = group.cost.footprint["smem"]
    assert isinstance(held, Const)
    assert held.value <= 164 * 1024


@pytest.mark.feature("W09", "W10")
@pytest.mark.parametrize(("rows", "sizes"), [(64, [7]), (1, None)])
def test_products_follow_one_another_in_registers_where_there_are_rows_for_a_unit(
    rows: int, sizes: list[int] | None
) -> None:
    """Those of a decoder's step, which has one, have no tile of whole fragments."""
    graph = attention("rows", 4096, 64, ttype="f16")
    problem = problem_of(graph, target_model_of(device("a100")))
    problem = replace(problem, numbers=Candidates({"rows": rows}))
    ((chain, _),) = online_reductions._chains(problem, 1)
    held = online_reductions._held(problem, chain)
    assert (held and [len(part) for part in held.parts]) == sizes


def test_long_attention_is_one_group_above_a_host_memory() -> None:
    plan = planned(attention(65_536, 65_536, 64, "S[m, n] * 0.125"), device("a100-host"))
    (group,) = plan.groups
    assert shared(group) == ("X", "Z", "O")
    assert set(group.connect.values()) <= {"smem", "reg"}


@pytest.mark.quick_cases("zen5-avx512")
@pytest.mark.parametrize("name", ["a100", "h100", "zen5-avx512"])
def test_a_shared_loop_is_predicted_to_gain(name: str) -> None:
    graph = attention(65_536, 65_536, 64, "S[m, n] * 0.125")
    plans = [schedule(graph, device(name), ScheduleOptions(fusion=fusion)) for fusion in ("register", "full")]
    apart, joined = (sum(group.cost.picoseconds for group in plan.groups) for plan in plans)
    assert any(shared(group) for group in plans[1].groups)
    assert joined < apart


ONNX = """
<ir_version: 8, opset_import: ["" : 17]>
attention (float[1,2,{n},64] q, float[1,2,{n},64] k, float[1,2,{n},64] v) => (float[1,2,{n},64] y)
<float root = {{0.125}}> {{
  turned = Transpose<perm=[0,1,3,2]>(k)
  scores = MatMul(q, turned)
  scaled = Mul(scores, root)
  weights = Softmax<axis=-1>(scaled)
  y = MatMul(weights, v)
}}
"""


@pytest.mark.feature("W09", "W16")
def test_long_attention_of_a_model_is_one_group_on_a_gpu(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(ONNX.format(n=65_536)), tmp_path / "attention.onnx")
    plan = planned(import_model(tmp_path / "attention.onnx").graph, device("a100"))
    assert scores_stay(plan, 65_536)
    assert len(shared(plan.groups[-1])) == 3


def masked(graph: Graph) -> Arrays:
    """Values; rows of the mask hide nothing, some, the first half and all."""
    arrays = arrays_of(graph)
    keys = arrays["M"].shape[1]
    hidden = [
        np.arange(keys) < 0,
        np.random.default_rng(1).random(keys) < 0.3,
        np.arange(keys) < keys // 2,
        np.arange(keys) >= 0,
    ]
    for row, hide in enumerate(hidden):
        arrays["M"][row][hide] = -np.inf
    return arrays


@pytest.mark.slow_cases("implicit-1")
@pytest.mark.feature("W09", "W17")
@pytest.mark.parametrize(
    ("managed", "threads"), [("explicit", 4), pytest.param("explicit", 1, marks=pytest.mark.slow), ("implicit", 1)]
)
def test_rows_longer_than_a_level(managed: str, threads: int) -> None:
    graph = attention(7, 523)
    plan = planned(graph, tiny(managed, threads))
    assert illegal(plan) == []
    assert scores_stay(plan, 523)
    assert [shared(group) for group in plan.groups] == [("X", "Z", "O")]
    arrays = masked(graph)
    found = run_plan(plan, arrays)["O"]
    np.testing.assert_allclose(found, exact_attention(arrays), rtol=1e-5, atol=1e-6)
    assert np.isnan(found[3]).all()
    assert not np.isnan(np.delete(found, 3, 0)).any()


@pytest.mark.feature("W09")
def test_the_plan_of_a_long_row_is_compiled(tmp_path: Path) -> None:
    graph = attention(7, 523)
    plan = planned(graph, tiny())
    (group,) = plan.groups
    assert shared(group)
    arrays, batch = masked(graph), Batch()
    batch.add(lower(group, group.variants[0], plan), arrays, AVX2)
    (made,) = batch.run(tmp_path, threads=2)
    assert close(made["O"], exact_attention(arrays), 1e-5)


@pytest.mark.feature("W09", "W16")
def test_variance_of_long_rows_takes_one_pass() -> None:
    extents = {"s": 3, "r": 600}
    texts = [*normalized(600), "Y[s, r] = (A[s, r] - U[s]) / sqrt(S[s] + 0.001)"]
    graph = make_graph({"A": (3, 600)}, [(text, extents) for text in texts], ["Y"])
    plan = planned(graph, tiny(), ScheduleOptions(fusion="full", objective="traffic"))
    (loop,) = [group for group in plan.groups if shared(group)]
    assert {"T", "Q", "V"} < set(shared(loop))
    assert len(plan.tensors) > len(graph.tensors)
    moved = sum(group.cost.read["l2"].value for group in plan.groups if isinstance(group.cost.read["l2"], Const))
    assert moved < 3 * 3 * 600 * 4, "once for the statistics, once for the result"
    rows = (np.random.default_rng(3).standard_normal((3, 600)) + 1e3).astype(np.float32)
    wide = rows.astype(np.float64)
    exact = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 0.001)
    np.testing.assert_allclose(run_plan(plan, {"A": rows})["Y"], exact, atol=5e-4)


def test_a_loop_that_no_program_fits_is_done_without() -> None:
    """The search takes it for fitting, its programs do not fit."""
    extents = {"s": 49, "r": 96}
    texts = [*normalized(96), "Y[s, r] = (A[s, r] - U[s] - W[s]) / sqrt(S[s] + 0.001)", "M[r] = sum(s, Y[s, r])"]
    graph = make_graph({"A": (49, 96)}, [(text, extents) for text in texts], ["M"])
    plan = planned(graph, tiny("explicit", 4), ScheduleOptions(fusion="full", objective="traffic"))
    arrays = {"A": np.random.default_rng(5).standard_normal((49, 96)).astype(np.float32)}
    wide = arrays["A"].astype(np.float64)
    exact = ((wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 0.001)).sum(0)
    np.testing.assert_allclose(run_plan(plan, arrays)["M"], exact, atol=1e-3)


def test_copies_stay_in_the_parts_of_their_nodes() -> None:
    extents = {"m": 3, "n": 600}
    texts = [
        "X[m] = max(n, A[m, n])",
        "D[m, n] = A[m, n] - X[m]",
        "E[m, n] = exp(D[m, n])",
        "W[m, n] = E[m, n] * B[n]",
        "Z[m] = sum(n, W[m, n])",
        "R[m, n] = E[m, n] / Z[m]",
    ]
    graph = make_graph({"A": (3, 600), "B": (600,)}, [(text, extents) for text in texts], ["R"])
    options = ScheduleOptions(fusion="full", objective="traffic", passes=())
    plan = planned(graph, tiny(), options)
    (loop,) = [group for group in plan.groups if shared(group)]
    assert {"X", "Z"} <= set(shared(loop))
    arrays = arrays_of(graph)
    weights = np.exp(arrays["A"] - arrays["A"].max(1, keepdims=True)).astype(np.float64)
    exact = weights / (weights * arrays["B"]).sum(1, keepdims=True)
    np.testing.assert_allclose(run_plan(plan, arrays)["R"], exact, rtol=1e-3)


@pytest.mark.slow_cases("a100")
@pytest.mark.parametrize("name", ["a100", "avx2"])
def test_short_rows_keep_the_groups_that_they_have(name: str) -> None:
    plan = planned(attention(256, 128, 32), device(name))
    assert not any(shared(group) for group in plan.groups)


def test_without_full_fusion_nothing_shares_a_loop() -> None:
    for fusion in ("none", "register"):
        plan = schedule(attention(7, 523), tiny(), ScheduleOptions(fusion=fusion))
        assert not any(shared(group) for group in plan.groups)


def test_sums_over_one_element_are_planned() -> None:
    """They share no loop, which would have no steps."""
    e = {"s": 1, "n": 130, "k": 130}
    texts = [
        ("a[n, k] = sum(s, x[s, n] * x[s, k])", e),
        ("y[s, n] = sum(k, x[s, k] * a[n, k])", e),
        ("b[n] = sum(s, y[s, n])", e),
        ("z[s, n] = y[s, n] - b[n]", e),
        ("c[n] = sum(s, z[s, n])", e),
        ("u[s, n] = z[s, n] - c[n]", e),
    ]
    plan = schedule(make_graph({"x": (1, 130)}, texts, ["u"]), device("a100"))
    assert all(not variant.shared for group in plan.groups for variant in group.variants)
