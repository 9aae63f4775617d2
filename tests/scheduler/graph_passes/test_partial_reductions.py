"""Partial and final reductions compute what the reduction does, for any split of any of its iterators."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler.graphs import make_graph

from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Reduce
from tilec.ir.graph import Graph
from tilec.ir.text import tensor_text
from tilec.ir.verify.graph import check_graph
from tilec.scheduler.graph_passes.partial_reductions import AxisSplit, split_into_partials
from tilec.scheduler.graph_passes.rewrite import with_nodes

BODIES = {
    "x": "x[m, h, w]",
    "square": "x[m, h, w] * x[m, h, w]",
    "window": "where(h + w >= 1, x[m, h + w - 1, w], 0.0)",
    "gather": "x[m, h, i[w]]",
    "product": "x[m, h, w] * v[w, h]",
}


def reduction(op: str, body: str, shape: tuple[int, int, int], ttype: str = "f32") -> Graph:
    m, h, w = shape
    extents = {"m": m, "h": h, "w": w}
    node = (f"y[m] = {op}(h, w, {BODIES[body]})", extents)
    inputs = {"x": (m, h + w, w), "v": (w, h), "i": (w,)}
    read = {name: inputs[name] for name in ("x", "v", "i") if f"{name}[" in BODIES[body]}
    return make_graph(read, [node], ["y"], ttypes={"x": ttype, "v": ttype, "i": "i64"})


def split(graph: Graph, axes: Sequence[AxisSplit]) -> Graph | None:
    pair = split_into_partials(graph.nodes[0], tuple(axes), graph, frozenset())
    if pair is None:
        return None
    after = with_nodes(graph, [pair.partial, pair.final], {pair.partial.name: pair.tensor})
    assert check_graph(after) == ()
    return after


def result(graph: Graph, arrays: dict[str, np.ndarray]) -> np.ndarray:
    known = dict(arrays)
    for node in graph.nodes:
        known[node.name] = evaluate(node.expr, known, ttype=graph.tensors[node.name].ttype)
    return known["y"]


def exact(op: str, body: str, shape: tuple[int, int, int], arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The same in float64, or in Python's integers, by NumPy alone."""
    m, h, w = shape
    kind = np.float64 if arrays["x"].dtype.kind == "f" else np.int64
    x = arrays["x"].astype(kind)
    rows, columns = np.arange(h)[:, None], np.arange(w)[None, :]
    match body:
        case "window":
            points = np.where(rows + columns >= 1, x[:, rows + columns - 1, columns], 0)
        case "gather":
            points = x[:, rows, arrays["i"][columns]]
        case "product":
            points = x[:, :h, :w] * arrays["v"].astype(kind).T
        case _:
            points = x[:, :h, :w] ** (2 if body == "square" else 1)
    ufunc = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[op]
    return ufunc.reduce(points.reshape(m, -1), axis=1)


EXTENTS = st.sampled_from([1, 2, 3, 5, 7, 8, 12, 13, 17, 24])
AXES = st.tuples(*(st.none() | st.tuples(st.integers(0, 24), st.booleans()) for _ in range(2)))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.sampled_from(["sum", "max", "min", "prod"]),
    st.sampled_from(sorted(BODIES)),
    st.tuples(st.integers(1, 3), EXTENTS, EXTENTS),
    AXES,
    st.sampled_from(["f32", "i32", "i64"]),
)
def test_a_split_reduction_has_the_same_value(op, body, shape, axes, ttype) -> None:
    if ttype != "f32" and body == "window":
        body = "square"
    graph = reduction(op, body, shape, ttype)
    after = split(graph, [AxisSplit(n, *axis) for n, axis in enumerate(axes) if axis is not None])
    rng = np.random.default_rng(0)
    arrays: dict[str, np.ndarray] = {}
    for port in graph.inputs:
        size = [extent.value for extent in graph.tensors[port.tensor].shape]  # type: ignore[union-attr]
        match graph.tensors[port.tensor].ttype:
            case "f32":
                arrays[port.tensor] = rng.uniform(0.5, 1.5, size).astype(np.float32)
            case "i32" | "i64" as kind:
                most = shape[2] if port.tensor == "i" else 3
                arrays[port.tensor] = rng.integers(0, most, size).astype(kind.replace("i", "int"))
    expected = exact(op, body, shape, arrays)
    if after is None:
        return
    (partial, final) = after.nodes
    assert isinstance(partial.expr.body, Reduce)
    assert isinstance(final.expr.body, Reduce)
    assert {partial.expr.body.op, final.expr.body.op} == {op}
    found = result(after, arrays)
    assert found.dtype == arrays["x"].dtype
    if op in ("max", "min") or ttype != "f32":
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(found, expected.astype(found.dtype))
    else:
        np.testing.assert_allclose(found, expected, rtol=3e-5)


def test_what_is_split_reads_neighbours_or_every_so_many() -> None:
    graph = make_graph({"x": (4, 96)}, [("y[m] = sum(k, x[m, k])", {"m": 4, "k": 96})], ["y"])
    runs, turns = (split(graph, [AxisSplit(0, 8, interleaved)]) for interleaved in (False, True))
    assert runs is not None
    assert turns is not None
    assert [tensor_text(node.expr) for node in runs.nodes] == [
        "y_partial1[m, k1] = sum(k2, x[m, k1 * 12 + k2])",
        "y[m] = sum(k1, y_partial1[m, k1])",
    ]
    assert tensor_text(turns.nodes[0].expr) == "y_partial1[m, k1] = sum(k2, x[m, k1 + k2 * 8])"


def test_partial_results_are_stored_in_the_order_of_what_they_read() -> None:
    """Channels stay innermost; a part of an image is outside of them."""
    e = {"c": 8, "h": 16, "w": 16}
    graph = make_graph({"x": (16, 16, 8)}, [("y[c] = max(h, w, x[h, w, c])", e)], ["y"])
    after = split(graph, [AxisSplit(0), AxisSplit(1, 4, interleaved=True)])
    assert after is not None
    assert tensor_text(after.nodes[0].expr) == "y_partial1[h, w1, c] = max(w2, x[h, w1 + w2 * 4, c])"


def test_no_element_is_reduced_twice_or_left_out_where_parts_do_not_divide() -> None:
    graph = make_graph({"x": (2, 13)}, [("y[m] = sum(k, x[m, k])", {"m": 2, "k": 13})], ["y"])
    after = split(graph, [AxisSplit(0, 4)])
    assert after is not None
    assert "where(k1 * 4 + k2 < 13, x[m, k1 * 4 + k2], 0.0)" in tensor_text(after.nodes[0].expr)


def test_half_precision_is_summed_in_single() -> None:
    """4096 ones: in half precision a sum of more than 2048 of them stays what it is."""
    e = {"m": 1, "k": 8192}
    for body in ("x[m, k]", "f32(x[m, k])"):
        graph = make_graph({"x": (1, 8192)}, [(f"y[m] = sum(k, {body})", e)], ["y"], ttypes={"x": "f16"})
        graph = replace(graph, tensors={**graph.tensors, "y": replace(graph.tensors["y"], ttype="f16")})
        after = split(graph, [AxisSplit(0, 2)])
        assert after is not None
        assert after.tensors["y_partial1"].ttype == "f32"
        assert after.tensors["y"].ttype == "f16"
        assert result(after, {"x": np.ones((1, 8192), np.float16)}).tolist() == [8192]


def test_a_window_of_integers_has_no_neutral_maximum() -> None:
    e = {"m": 1, "k": 13}
    graph = make_graph({"x": (1, 13)}, [("y[m] = max(k, x[m, k])", e)], ["y"], ttypes={"x": "i32"})
    assert split(graph, [AxisSplit(0, 4)]) is None
    assert split(graph, [AxisSplit(0)]) is None, "nothing is left to reduce"
