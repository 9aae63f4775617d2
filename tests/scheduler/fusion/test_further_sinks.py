"""Several results in one group: tiled along with the last one where their windows agree, stored once, refused with the
reason elsewhere (W06)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler.graphs import make_graph
from scheduler.running import device, illegal, problem_of, tiny

from tests.codegen.cpu.running import AVX2, Batch, close
from tests.examples import examples
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Const
from tilec.ir.graph import Graph
from tilec.lower.lowering import lower
from tilec.machine import execute
from tilec.scheduler.fusion.group_costs import GroupCosts
from tilec.scheduler.schedule import schedule
from tilec.scheduler.target_model import target_model_of
from tilec.scheduler.tiling.further_sinks import further_sinks
from tilec.spec.device import DeviceSpec

DEVICES = {"a100": device("a100"), "avx2": device("avx2"), "tiny": tiny(), "threads": tiny("explicit", 32)}

Nodes = list[tuple[str, dict[str, int | str]]]


def projections(rows: int, inner: int, widths: list[int]) -> Graph:
    """Normalised rows and their products with matrices of different widths."""
    e: dict[str, int | str] = {"s": rows, "k": inner}
    nodes: Nodes = [("m[s] = sum(k, x[s, k])", e), ("y[s, k] = x[s, k] / m[s]", e)]
    nodes += [(f"q{i}[s, n] = sum(k, y[s, k] * w{i}[k, n])", {**e, "n": n}) for i, n in enumerate(widths)]
    shapes = {"x": (rows, inner)} | {f"w{i}": (inner, n) for i, n in enumerate(widths)}
    return make_graph(shapes, nodes, [f"q{i}" for i in range(len(widths))])


SINKS = (
    "z{i}[s, k] = exp(y[s, k])",
    "z{i}[s] = max(k, y[s, k])",
    "z{i}[s, n] = sum(k, y[s, k] * w{i}[k, n])",
    "z{i}[s, k] = y[s, k] + where(s >= 1, y[s - 1, k], 0.0)",
    "z{i}[k, s] = y[s, k] * 2.0",
    "z{i}[k] = sum(s, y[s, k])",
    "z{i}[t, k] = y[t * 2, k]",
)


@st.composite
def siblings(draw: st.DrawFn) -> Graph:
    """Rows that two to four results are computed of, which agree on them or do not."""
    rows, inner = draw(st.integers(2, 12)), draw(st.integers(1, 9))
    e: dict[str, int | str] = {"s": rows, "k": inner, "t": -(-rows // 2)}
    nodes: Nodes = [("m[s] = max(k, x[s, k])", e), ("y[s, k] = x[s, k] - m[s]", e)]
    chosen = draw(st.lists(st.sampled_from(SINKS), min_size=2, max_size=4))
    widths = [draw(st.integers(1, 9)) for _ in chosen]
    nodes += [(text.format(i=i), {**e, "n": widths[i]}) for i, text in enumerate(chosen)]
    shapes = {"x": (rows, inner)}
    shapes |= {f"w{i}": (inner, widths[i]) for i, text in enumerate(chosen) if "w{i}" in text}
    return make_graph(shapes, nodes, [f"z{i}" for i in range(len(chosen))])


def computed(graph: Graph) -> dict[str, Any]:
    """Random inputs and what nodes make of them."""
    rng = np.random.default_rng(0)
    shapes = {port.tensor: [int(e.value) for e in graph.tensors[port.tensor].shape] for port in graph.inputs}  # type: ignore[union-attr]
    values: dict[str, Any] = {t: rng.uniform(0.5, 1.5, shape).astype(np.float32) for t, shape in shapes.items()}
    for node in graph.nodes:
        values[node.name] = evaluate(node.expr, values, ttype="f32")
    return values


def run(graph: Graph, spec: DeviceSpec, batch: Batch | None = None) -> int:
    """Groups with further sinks of the plan. Each runs on the tile machine as planned: values, bytes, stored once."""
    plan = schedule(graph, spec)
    assert illegal(plan) == []
    reference = computed(graph)
    values = {port.tensor: reference[port.tensor] for port in plan.inputs}
    for node in plan.prepared:
        values[node.name] = evaluate(node.expr, values, ttype="f32")
    several = 0
    for group in plan.groups:
        program = lower(group, group.variants[0], plan)
        read = dict(values)
        result = execute(program, read)
        values |= result.outputs
        for level in program.levels:
            counted = result.moved[level.name]
            assert group.cost.written[level.name] == Const(counted.written)
            assert group.cost.read[level.name] == Const(counted.read)
        several += bool(further_sinks(group.nodes).names)
        if batch is not None:
            batch.add(program, read, AVX2)
    for port in plan.outputs:
        assert close(np.asarray(values[port.tensor]), reference[port.tensor], 1e-4)
    return several


@pytest.mark.feature("W06", "W16")
@pytest.mark.parametrize("name", ["a100", "avx2"])
def test_products_of_the_same_rows_are_one_group(name: str) -> None:
    plan = schedule(projections(64, 128, [128, 128, 128]), DEVICES[name])
    (group,) = plan.groups
    assert set(group.outputs) == {"q0", "q1", "q2"}
    assert not plan.refusals
    target = target_model_of(DEVICES[name])
    assert set(group.variants[0].tiles[target.core_level][group.name]) == {"s", "n"}
    problem = problem_of(projections(64, 128, [128, 128, 96]), target)
    (tile,) = problem.core_tiles(tuple(range(len(problem.parts))))
    assert tile.sizes.keys() == {"s"}, "columns differ in number, so they are not cut"


@pytest.mark.feature("W06")
def test_iterators_align_that_move_a_common_ancestor_alike() -> None:
    aligned = further_sinks(projections(8, 6, [5, 5]).nodes).aligned
    assert aligned == {"s": {"q0": "s"}, "n": {"q0": "n"}}
    assert further_sinks(projections(8, 6, [4, 5]).nodes).aligned == {"s": {"q0": "s"}}
    e: dict[str, int | str] = {"s": 6, "k": 6}
    crossed = make_graph(
        {"x": (6, 6)},
        [("y[s, k] = exp(x[s, k])", e), ("a[s, k] = y[s, k] + 1.0", e), ("b[s, k] = y[k, s] + 1.0", e)],
        ["a", "b"],
    )
    assert further_sinks(crossed.nodes).aligned == {}


@pytest.mark.feature("W06")
@pytest.mark.parametrize(
    ("last", "reason"),
    [("b[k] = sum(s, y[s, k])", "no iterators move along"), ("b[s] = max(k, v[s, k])", "no common ancestor")],
)
def test_results_that_do_not_agree_are_not_connected(last: str, reason: str) -> None:
    e: dict[str, int | str] = {"s": 8, "k": 6}
    nodes: Nodes = [("m[s] = max(k, x[s, k])", e), ("y[s, k] = x[s, k] - m[s]", e), ("a[s] = sum(k, y[s, k])", e)]
    graph = make_graph({"x": (8, 6), "v": (8, 6)}, [*nodes, (last, e)], ["a", "b"])
    problem = problem_of(graph, target_model_of(DEVICES["a100"]))
    found = GroupCosts(problem, 0.99).cost(tuple(range(len(problem.parts))))
    assert found.code == "outputs-differ"  # type: ignore[union-attr]
    assert reason in str(found.numbers["reason"])  # type: ignore[union-attr]


@pytest.mark.quick_cases("avx2")
@pytest.mark.feature("W06")
@pytest.mark.parametrize("name", DEVICES)
@examples(10, seed=5)
@given(graph=siblings())
def test_random_siblings_run_as_planned(name: str, graph: Graph) -> None:
    run(graph, DEVICES[name])


@pytest.mark.feature("W06")
def test_compiled_siblings_are_right(tmp_path: Path) -> None:
    batch = Batch()
    graphs = [projections(24, 16, [16, 16, 8]), projections(7, 5, [3, 4]), projections(9, 8, [8, 8, 8])]
    for graph in graphs:
        assert run(graph, DEVICES["avx2"], batch) == 1
    wanted = [{port.tensor: computed(graph)[port.tensor] for port in graph.outputs} for graph in graphs]
    for made, expected in zip(batch.run(tmp_path), wanted, strict=True):
        assert made.keys() == expected.keys()
        assert all(close(made[name], expected[name], 1e-4) for name in expected)
