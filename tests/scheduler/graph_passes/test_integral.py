"""Sums of products of dequantised numbers, as sums of integers: against exact sums by NumPy's 64-bit integers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scheduler.graphs import make_graph

from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Call, Reduce, operands, walk
from tilec.ir.graph import Graph, Inline
from tilec.ir.verify.graph import check_graph
from tilec.scheduler.graph_passes.integral import integral
from tilec.scheduler.graph_passes.rewrite import constant_tensors
from tilec.scheduler.graph_passes.sink_dequantize import sink_dequantize
from tilec.scheduler.refusals import RewrittenGraph

Arrays = dict[str, NDArray[np.generic]]

LIMITS = {"u8": (0, 255), "i8": (-128, 127)}


def rewritten(graph: Graph) -> Graph:
    after = integral(sink_dequantize(RewrittenGraph(graph))).graph
    assert check_graph(after) == ()
    return after


def result(graph: Graph, arrays: Arrays) -> NDArray[np.generic]:
    known = dict(arrays)
    for node in graph.nodes:
        known[node.name] = evaluate(node.expr, known, ttype=graph.tensors[node.name].ttype)
    return known[graph.outputs[0].tensor]


def codes(rng: np.random.Generator, ttype: str, shape: tuple[int, ...]) -> NDArray[np.generic]:
    """Random codes, many of them at the ends of the range."""
    low, high = LIMITS[ttype]
    numbers = rng.integers(low, high + 1, shape)
    ends = rng.integers(0, 3, shape)
    dtype = np.dtype({"u8": "uint8", "i8": "int8"}[ttype])
    return np.where(ends == 0, low, np.where(ends == 1, high, numbers)).astype(dtype)


def dequantised(name: str, code: str, index: str, zero: int, scale: str) -> str:
    number = f"i32({code}[{index}])" + (f" - {zero}" if zero else "")
    return f"{name}[{index}] = f32({number}) * {scale}"


def is_integral(graph: Graph) -> bool:
    """Whether all that is summed are codes."""
    sums = [node.expr for node in graph.nodes if isinstance(node.expr.body, Reduce)]
    real = any(graph.tensors[tensor].ttype == "f32" for expr in sums for tensor in operands(expr))
    return not real and not any(isinstance(e, Call) and e.fn == "f32" for expr in sums for e in walk(expr.value))


SIZES = st.integers(1, 9)
TYPES = st.sampled_from(["u8", "i8"])
ENDS = st.sampled_from(["low", "high", "middle", "none"])


def zero_of(ttype: str, end: str) -> int:
    low, high = LIMITS[ttype]
    return {"low": low, "high": high, "middle": (low + high) // 2 + 3, "none": 0}[end]


@settings(max_examples=40, deadline=None)
@given(SIZES, SIZES, SIZES, TYPES, TYPES, ENDS, ENDS, st.booleans(), st.integers(0, 99))
def test_products_of_matrices(
    m: int, n: int, k: int, left: str, right: str, of_x: str, of_w: str, per_column: bool, seed: int
) -> None:
    z, y = zero_of(left, of_x), zero_of(right, of_w)
    rng = np.random.default_rng(seed)
    arrays: Arrays = {
        "x": codes(rng, left, (m, k)),
        "w": codes(rng, right, (k, n)),
        "s": (2.0 ** rng.integers(-9, 9, n)).astype(np.float32),
    }
    nodes = [
        (dequantised("a", "x", "i, k", z, "0.25"), {"i": m, "k": k}),
        (dequantised("b", "w", "k, n", y, "s[n]" if per_column else "0.5"), {"k": k, "n": n}),
        ("c[i, n] = sum(k, a[i, k] * b[k, n])", {"i": m, "n": n, "k": k}),
    ]
    read = {"x": (m, k), "w": (k, n), **({"s": (n,)} if per_column else {})}
    graph = make_graph(read, nodes, ["c"], ttypes={"x": left, "w": right})
    after = rewritten(graph)
    assert is_integral(after)
    exact = (arrays["x"].astype(np.int64) - z) @ (arrays["w"].astype(np.int64) - y)
    scale = arrays["s"].astype(np.float64) if per_column else 0.5
    assert np.array_equal(result(after, arrays), exact * (0.25 * scale))


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(0, 2),
    TYPES,
    ENDS,
    ENDS,
    st.booleans(),
    st.integers(0, 99),
)
def test_borders_of_convolutions(
    h: int, channels: int, r: int, pad: int, ttype: str, of_x: str, of_w: str, depthwise: bool, seed: int
) -> None:
    """Outside the input the real number is 0, hence the code the zero point."""
    z, y, o = zero_of(ttype, of_x), zero_of("i8", of_w), 5
    out = h + 2 * pad - r + 1
    if out < 1:
        return
    rng = np.random.default_rng(seed)
    filters = channels if depthwise else o
    shape = (channels, r) if depthwise else (o, channels, r)
    arrays: Arrays = {"x": codes(rng, ttype, (channels, h)), "w": codes(rng, "i8", shape)}
    inside = f"p + r - {pad} >= 0 and p + r - {pad} < {h}"
    index = {"c": channels, "p": out, "r": r, "o": o}
    if depthwise:
        text = f"c_[c, p] = sum(r, where({inside}, a[c, p + r - {pad}], 0.0) * b[c, r])"
        weights = (dequantised("b", "w", "c, r", y, "0.5"), {"c": channels, "r": r})
    else:
        text = f"c_[o, p] = sum(c, r, where({inside}, a[c, p + r - {pad}], 0.0) * b[o, c, r])"
        weights = (dequantised("b", "w", "o, c, r", y, "0.5"), {"o": o, "c": channels, "r": r})
    used = {name: extent for name, extent in index.items() if not (depthwise and name == "o")}
    inputs = (dequantised("a", "x", "c, h", z, "0.25"), {"c": channels, "h": h})
    graph = make_graph(
        {"x": (channels, h), "w": shape}, [inputs, weights, (text, used)], ["c_"], ttypes={"x": ttype, "w": "i8"}
    )
    after = rewritten(graph)
    assert is_integral(after)
    padded = np.pad(arrays["x"].astype(np.int64) - z, ((0, 0), (pad, pad)))
    w = arrays["w"].astype(np.int64) - y
    exact = np.zeros((filters, out), np.int64)
    for p in range(out):
        window = padded[:, p : p + r]
        exact[:, p] = (window * w).sum(1) if depthwise else (window[None] * w).sum((1, 2))
    assert np.array_equal(result(after, arrays), exact * 0.125)


def test_column_sums_of_constant_weights_are_prepared() -> None:
    """What a zero point of the activations comes to is known at compile time; weights stay codes."""
    nodes = [
        (dequantised("a", "x", "i, k", 7, "0.25"), {"i": 3, "k": 5}),
        (dequantised("b", "w", "k, n", 0, "0.5"), {"k": 5, "n": 2}),
        ("c[i, n] = sum(k, a[i, k] * b[k, n])", {"i": 3, "n": 2, "k": 5}),
    ]
    graph = make_graph({"x": (3, 5)}, nodes, ["c"], {"w": (5, 2)}, ttypes={"x": "u8", "w": "i8"})
    graph = replace(graph, constants={"w": Inline(tuple(range(-5, 5)))})
    after = rewritten(graph)
    assert [node.name for node in after.nodes] == ["c_integral1", "c_offset1", "c"]
    assert constant_tensors(after) == {"w", "c_offset1"}
    assert operands(after.nodes[0].expr) == ("x", "w")


def test_zero_points_of_exact_products_leave_the_sum() -> None:
    """MatMulInteger with a zero point that is known at run time only."""
    text = "c[i, n] = sum(k, (i32(x[i, k]) - i32(z[0])) * i32(w[k, n]))"
    graph = make_graph(
        {"x": (3, 5), "w": (5, 2), "z": (1,)},
        [(text, {"i": 3, "n": 2, "k": 5})],
        ["c"],
        ttypes={"x": "u8", "w": "i8", "z": "u8"},
    )
    rng = np.random.default_rng(3)
    arrays: Arrays = {"x": codes(rng, "u8", (3, 5)), "w": codes(rng, "i8", (5, 2)), "z": np.array([255], np.uint8)}
    after = rewritten(graph)
    assert [node.name for node in after.nodes] == ["c_integral1", "c_offset1", "c"]
    exact = (arrays["x"].astype(np.int64) - 255) @ arrays["w"].astype(np.int64)
    assert np.array_equal(result(after, arrays), exact)
    assert rewritten(after).nodes == after.nodes


# `(x - z) * w` with x and w of 8 bits: k * (255 * 128 + 255 * 128) must not exceed 2**31 - 1
@pytest.mark.parametrize(("k", "possible"), [(32896, True), (32897, False)])
def test_sums_that_could_leave_i32_stay_real(k: int, possible: bool) -> None:
    nodes = [
        (dequantised("a", "x", "i, k", 255, "0.25"), {"i": 1, "k": k}),
        (dequantised("b", "w", "k, n", 0, "0.5"), {"k": k, "n": 1}),
        ("c[i, n] = sum(k, a[i, k] * b[k, n])", {"i": 1, "n": 1, "k": k}),
    ]
    graph = make_graph({"x": (1, k), "w": (k, 1)}, nodes, ["c"], ttypes={"x": "u8", "w": "i8"})
    after = rewritten(graph)
    assert is_integral(after) == possible
    arrays: Arrays = {"x": np.zeros((1, k), np.uint8), "w": np.full((k, 1), -128, np.int8)}
    if possible:
        assert result(after, arrays)[0, 0] == np.float32(255 * 128 * k) * 0.125


def test_scales_that_are_summed_over_stay_inside() -> None:
    nodes = [
        (dequantised("a", "x", "i, k", 3, "s[k]"), {"i": 2, "k": 5}),
        (dequantised("b", "w", "k, n", 0, "0.5"), {"k": 5, "n": 3}),
        ("c[i, n] = sum(k, a[i, k] * b[k, n])", {"i": 2, "n": 3, "k": 5}),
    ]
    graph = make_graph({"x": (2, 5), "w": (5, 3), "s": (5,)}, nodes, ["c"], ttypes={"x": "u8", "w": "i8"})
    assert rewritten(graph).nodes == graph.nodes


def test_symbolic_rows_are_summed_as_integers_and_symbolic_sums_are_not() -> None:
    def graph(m: int | str, k: int | str) -> Graph:
        nodes = [
            (dequantised("a", "x", "i, k", 3, "0.5"), {"i": m, "k": k}),
            (dequantised("b", "w", "k, n", 0, "0.5"), {"k": k, "n": 3}),
            ("c[i, n] = sum(k, a[i, k] * b[k, n])", {"i": m, "n": 3, "k": k}),
        ]
        return make_graph({"x": (m, k), "w": (k, 3)}, nodes, ["c"], symbols=["t"], ttypes={"x": "u8", "w": "i8"})

    assert is_integral(rewritten(graph("t", 8)))
    assert not is_integral(rewritten(graph(8, "t")))
