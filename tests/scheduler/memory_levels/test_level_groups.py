"""spans: convex runs of parts and their tiles at levels below a core's, against programs that are lowered and run."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler.graphs import make_graph
from scheduler.models import convolutions
from scheduler.running import run_plan
from scheduler.spanned import counted, plan_of, spans_of, target

from tests.random_graphs import Model, models
from tilec.errors import ConfigError
from tilec.ir.expr import accesses, operands
from tilec.ir.graph import Graph
from tilec.ir.intervals import Candidates
from tilec.lower.lowering import lower
from tilec.machine import execute
from tilec.scheduler.graph_passes.fuse_registers import fuse_registers
from tilec.scheduler.memory_levels.incremental_cost import IncrementalCost
from tilec.scheduler.memory_levels.level_groups import level_groups

SIDE, CHANNELS = 64, 8


def conv(x: str, y: str, side: int, inputs: int, outputs: int) -> tuple[str, dict[str, int | str]]:
    """A padded 3x3 convolution."""
    inside = f"h + r - 1 >= 0 and h + r - 1 < {side} and w + s - 1 >= 0 and w + s - 1 < {side}"
    text = f"where({inside}, {x}[n, c, h + r - 1, w + s - 1], 0.0) * {y}_weight[o, c, r, s]"
    extents = {"n": 1, "o": outputs, "h": side, "w": side, "c": inputs, "r": 3, "s": 3}
    return f"{y}[n, o, h, w] = sum(c, r, s, {text})", extents


@cache
def chain(layers: int = 4, side: int = SIDE) -> Graph:
    """Convolutions, one after the other."""
    nodes = [conv("x" if k == 0 else f"y{k - 1}", f"y{k}", side, CHANNELS if k else 3, CHANNELS) for k in range(layers)]
    weights = {f"y{k}_weight": (CHANNELS, CHANNELS if k else 3, 3, 3) for k in range(layers)}
    return make_graph({"x": (1, 3, side, side)}, nodes, [f"y{layers - 1}"], weights)


@cache
def hourglass(side: int = 32) -> Graph:
    """Down by pooling and up again, joined with what was there before; also the coarse tensor leaves."""
    half = side // 2
    e: dict[str, int | str] = {"n": 1, "c": 4, "h": half, "w": half, "r": 2, "s": 2}
    wide = {**e, "h": side, "w": side, "c": 8}
    nodes = [
        conv("x", "a", side, 3, 4),
        ("p[n, c, h, w] = max(r, s, a[n, c, h*2 + r, w*2 + s])", e),
        conv("p", "b", half, 4, 4),
        ("j[n, c, h, w] = where(c < 4, a[n, c, h, w], b[n, c - 4, h // 2, w // 2])", wide),
        conv("j", "z", side, 8, 2),
    ]
    weights = {"a_weight": (4, 3, 3, 3), "b_weight": (4, 4, 3, 3), "z_weight": (2, 8, 3, 3)}
    return make_graph({"x": (1, 3, side, side)}, nodes, ["z", "b"], weights)


def bytes_of(graph: Graph, *tensors: str) -> int:
    return sum(4 * int(np.prod([e.value for e in graph.tensors[t].shape])) for t in tensors)  # type: ignore[union-attr]


def test_what_fits_is_one_span_of_compulsory_bytes() -> None:
    graph = chain()
    parts = fuse_registers(graph).parts
    (span,) = spans_of(parts, graph, 1 << 20)
    assert (span.members, span.sizes, span.order) == ((0, 1, 2, 3), {}, ())
    compulsory = bytes_of(graph, "x", "y3", *graph.constants)
    assert span.moved == compulsory
    assert counted(plan_of(graph, parts, (span,), 1 << 20))[0] == [compulsory]


@pytest.mark.quick_cases("2-chain", "2-hourglass", "2-residual")
@pytest.mark.feature("W17", "W46")
@pytest.mark.parametrize("graph", [chain(), hourglass(), convolutions(33)], ids=["chain", "hourglass", "residual"])
@pytest.mark.parametrize("share", [2, 4, 8])
def test_connections_spare_the_link(graph: Graph, share: int) -> None:
    """Below the size of what is alive at once spans are tiled: less moves than without connections, within the
    capacity, near what the programs move, and the numbers stay."""
    parts = fuse_registers(graph).parts
    (whole,) = spans_of(parts, graph, 1 << 30)
    capacity = whole.held // share
    found, apart = (spans_of(parts, graph, capacity, closed=closed) for closed in (False, True))
    assert sorted(n for span in found for n in span.members) == list(range(len(parts)))
    assert [span.members for span in apart] == [(n,) for n in range(len(parts))]
    plan, single = plan_of(graph, parts, found, capacity), plan_of(graph, parts, apart, capacity)
    (moved, held), (alone, _) = counted(plan), counted(single)
    assert max(held) <= capacity
    assert sum(moved) < sum(alone)
    for span, size, room in zip((*found, *apart), moved + alone, held, strict=False):
        assert size <= span.moved * 1.01
        assert room <= span.held
    assert sum(moved) >= 0.7 * sum(span.moved for span in found)
    rng = np.random.default_rng(1)
    shapes = {p.name: [e.value for e in graph.tensors[p.tensor].shape] for p in graph.inputs}  # type: ignore[union-attr]
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    connected = run_plan(plan, feeds)
    for name, array in run_plan(single, feeds).items():
        np.testing.assert_allclose(connected[name], array, rtol=1e-4, atol=1e-6 * float(np.abs(array).max()))


@pytest.mark.feature("W18")
def test_weights_that_no_loop_moves_come_once() -> None:
    """The loop that leaves the larger operand in place runs innermost."""
    e = {"m": 64, "n": 512, "k": 64}
    graph = make_graph({"x": (64, 64)}, [("y[m, n] = sum(k, x[m, k] * b[k, n])", e)], ["y"], {"b": (64, 512)})
    parts = fuse_registers(graph).parts
    least = bytes_of(graph, "x", "b", "y")
    (span,) = spans_of(parts, graph, 4 * (64 * 64 + 64 * 64 + 64 * 64), objective="traffic")
    assert span.order == ("n",)
    assert span.moved == least
    assert counted(plan_of(graph, parts, (span,), 1 << 20))[0] == [least]


def test_a_tile_too_large_names_the_level() -> None:
    graph = chain()
    with pytest.raises(ConfigError, match="level middle of avx2 holds 200 bytes, the tile of .* y0 needs [0-9]+"):
        spans_of(fuse_registers(graph).parts, graph, 200)


def test_parts_that_share_nothing_are_spans_of_their_own() -> None:
    e = {"i": 8, "k": 4}
    nodes = [("a[i] = sum(k, x[i, k])", e), ("b[i] = max(k, x[i, k])", e), ("c[i] = sum(k, x[i, k] * a[i])", e)]
    graph = make_graph({"x": (8, 4)}, nodes, ["b", "c"])
    found = spans_of(fuse_registers(graph).parts, graph, 1 << 20)
    assert sorted(span.members for span in found) == [(0, 2), (1,)]


def test_extents_say_what_a_tile_holds() -> None:
    """They are what the search one level up works in."""
    graph = chain(2)
    parts = fuse_registers(graph).parts
    (whole,) = spans_of(parts, graph, 1 << 30)
    (span,) = spans_of(parts, graph, whole.held // 2)
    size = span.sizes.get("h", SIDE)
    assert span.extents["y1"]["h"] == size
    assert span.extents["y0"]["h"] == min(SIDE, size + 2)
    assert span.extents["y0"]["r"] == 3
    inner = level_groups(parts, graph, target(1 << 30), 1, Candidates(), around=span.extents)
    assert inner[0].moved < whole.moved
    assert inner[0].extents["y1"]["h"] == size


def test_several_instances_share_the_tiles() -> None:
    """Out of loops that run side by side nothing is hoisted: every tile loads all that it needs."""
    graph = chain(1)
    parts = fuse_registers(graph).parts
    (span,) = spans_of(parts, graph, 100_000, units=4)
    plan = plan_of(graph, parts, (span,), 100_000, units=4)
    assert span.sizes
    assert counted(plan)[0][0] <= span.moved
    assert span.moved <= 1.1 * counted(plan)[0][0]


@pytest.mark.parametrize("bits", [14, 17, 30])
def test_sizes_that_are_symbols_are_taken_as_likely(bits: int) -> None:
    e: dict[str, int | str] = {"b": "batch", "m": 16, "n": 32, "k": 32}
    nodes = [
        ("y[b, m, n] = sum(k, x[b, m, k] * v[k, n])", e),
        ("z[b, m, n] = sum(k, y[b, m, k] * w[k, n])", e),
    ]
    graph = make_graph({"x": ("batch", 16, 32)}, nodes, ["z"], {"v": (32, 32), "w": (32, 32)}, ["batch"])
    (span,) = level_groups(fuse_registers(graph).parts, graph, target(1 << bits), 1, Candidates({"batch": 8}))
    tile = span.sizes.get("b", 8) * span.sizes.get("m", 16)
    assert span.held <= 1 << bits
    assert span.moved == 4 * (2 * 8 * 16 * 32 + 2 * 32 * 32)
    assert tile == {14: tile, 17: 8 * 16, 30: 8 * 16}[bits]


def test_repeated_layers_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    best = IncrementalCost.best
    monkeypatch.setattr(IncrementalCost, "best", lambda walk, *limit: calls.append(1) or best(walk, *limit))  # type: ignore[func-returns-value]

    def looked(layers: int) -> int:
        calls.clear()
        graph = chain(layers)
        spans_of(fuse_registers(graph).parts, graph, 150_000)
        return len(calls)

    six, twelve = looked(6), looked(12)
    assert twelve <= 3 * six


@settings(deadline=None, max_examples=16)
@given(models(ttypes=("f64",)), st.integers(6, 13), st.booleans(), st.sampled_from(["time", "traffic", "footprint"]))
def test_any_graph_any_capacity(model: Model, bits: int, closed: bool, objective: str) -> None:
    """Programs of any graph are legal, hold what was said and compute the same, or the level is too small."""
    graph, capacity = model.graph, 1 << bits
    parts = fuse_registers(graph).parts
    try:
        found = spans_of(parts, graph, capacity, objective=objective, closed=closed)
    except ConfigError:
        assert capacity < 1 << 13
        return
    plan = plan_of(graph, parts, found, capacity)
    assert sorted(n for span in found for n in span.members) == list(range(len(parts)))
    done = {port.tensor for port in graph.inputs}
    for group in plan.groups:
        names = {node.name for node in group.nodes}
        assert {t for node in group.nodes for t in operands(node.expr)} <= done | names
        done |= names
    if all(len(accesses(node.expr)) == len(operands(node.expr)) for node in graph.nodes):
        # Of what a node reads twice under different guards, lowering holds the hull.
        assert max(counted(plan)[1]) <= capacity
    arrays = model.arrays()
    reference = model.reference(arrays)
    for group in plan.groups:
        arrays |= execute(lower(group, group.variants[0], plan), arrays).outputs
    for port in graph.outputs:
        np.testing.assert_allclose(arrays[port.tensor], reference[port.tensor], rtol=1e-9, atol=1e-9)
