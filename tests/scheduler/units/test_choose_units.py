"""Products by compute units, against exact sums by NumPy's 64-bit integers."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scheduler.graphs import make_graph
from scheduler.running import problem_of

from tilec.ir.dots import dot_of
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import Call, Reduce, walk
from tilec.ir.graph import Graph, Inline
from tilec.ir.verify.graph import check_graph
from tilec.scheduler.graph_passes.rewrite import constant_tensors
from tilec.scheduler.refusals import RewrittenGraph
from tilec.scheduler.target_model import TargetModel, target_model_of
from tilec.scheduler.units.choose_units import ChooseUnits
from tilec.spec.resolve import resolve_device

Arrays = Mapping[str, NDArray[np.generic]]

LIMITS = {"u8": (0, 255), "i8": (-128, 127)}
DTYPES = {"u8": np.uint8, "i8": np.int8}
DEVICES = {"zen5-avx512": "dot_u8_i8", "avx2": "dot_i16_i16", "neon": "dot_i8_i8"}
"""Device -> the function of its unit for integers."""


@cache
def target_of(name: str) -> TargetModel:
    return target_model_of(resolve_device(name))


def with_units(graph: Graph, device: str) -> Graph:
    after = ChooseUnits().run(RewrittenGraph(graph), problem_of(graph, target_of(device))).graph
    assert check_graph(after) == ()
    return after


def functions(graph: Graph) -> list[str]:
    """Functions of words that nodes have."""
    return [name for node in graph.nodes if (name := dot_of(node.expr.value))]


def codes(rng: np.random.Generator, ttype: str, shape: tuple[int, ...]) -> NDArray[np.generic]:
    """Random codes, many of them at the ends of the range."""
    low, high = LIMITS[ttype]
    ends = rng.choice([low, high], shape)
    return np.where(rng.random(shape) < 0.4, ends, rng.integers(low, high + 1, shape)).astype(DTYPES[ttype])


def with_constant(graph: Graph, name: str, values: NDArray[np.generic]) -> Graph:
    """A graph of which one constant has these values."""
    numbers = Inline(tuple(int(each) for each in values.ravel()))
    return replace(graph, constants={**graph.constants, name: numbers})


def result(graph: Graph, arrays: Arrays) -> NDArray[np.generic]:
    known = dict(arrays)
    for node in graph.nodes:
        known[node.name] = evaluate(node.expr, known, ttype=graph.tensors[node.name].ttype)
    return known[graph.outputs[0].tensor]


TYPES = st.sampled_from(["u8", "i8"])


@pytest.mark.feature("L13")
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(DEVICES)),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(1, 13),
    TYPES,
    TYPES,
    st.booleans(),
    st.integers(0, 99),
)
def test_products_of_matrices(
    device: str, m: int, n: int, k: int, left: str, right: str, fixed: bool, seed: int
) -> None:
    """Of all signs, also where words are not full: the other half of the range is made up for."""
    rng = np.random.default_rng(seed)
    arrays = {"x": codes(rng, left, (m, k)), "w": codes(rng, right, (k, n))}
    read = {"x": (m, k), **({} if fixed else {"w": (k, n)})}
    text = ("y[i, n] = sum(k, i32(x[i, k]) * i32(w[k, n]))", {"i": m, "n": n, "k": k})
    ttypes = {"x": left, "w": right}
    graph = make_graph(read, [text], ["y"], {"w": (k, n)} if fixed else {}, ttypes=ttypes)
    after = with_units(with_constant(graph, "w", arrays["w"]) if fixed else graph, device)
    count = 2 if device == "avx2" else 4
    assert functions(after) == ([DEVICES[device]] if 2 * k >= count * -(-k // count) else [])
    exact = arrays["x"].astype(np.int64) @ arrays["w"].astype(np.int64)
    np.testing.assert_array_equal(result(after, arrays), exact.astype(np.int32))


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(DEVICES)), st.integers(2, 9), TYPES, st.booleans(), st.integers(0, 99))
def test_borders_of_convolutions(device: str, channels: int, ttype: str, strided: bool, seed: int) -> None:
    """Outside of the input stands the zero point, for all elements of a word, in margins instead of guards."""
    h, r, o, zero = 6, 3, 4, LIMITS[ttype][1] - 5
    rng = np.random.default_rng(seed)
    arrays = {"x": codes(rng, ttype, (h, channels)), "w": codes(rng, "i8", (o, channels, r))}
    step = 2 if strided else 1
    out = (h + 2 - r) // step + 1
    at = f"{step}*p + r - 1"
    text = f"y[p, o] = sum(c, r, where({at} >= 0 and {at} < {h}, i32(x[{at}, c]), {zero}) * i32(w[o, c, r]))"
    extents = {"p": out, "o": o, "c": channels, "r": r}
    ttypes = {"x": ttype, "w": "i8"}
    graph = make_graph({"x": (h, channels)}, [(text, extents)], ["y"], {"w": (o, channels, r)}, ttypes=ttypes)
    after = with_units(with_constant(graph, "w", arrays["w"]), device)
    assert functions(after) == [DEVICES[device]]
    padded = np.pad(arrays["x"].astype(np.int64), ((1, 1), (0, 0)), constant_values=zero)
    w = arrays["w"].astype(np.int64)
    exact = np.stack([np.einsum("rc,ocr->o", padded[step * p : step * p + r], w) for p in range(out)])
    np.testing.assert_array_equal(result(after, arrays), exact)
    products = [node.expr.value for node in after.nodes if dot_of(node.expr.value)]
    assert not any(isinstance(part, Call) and part.fn == "where" for value in products for part in walk(value))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(sorted(DEVICES)),
    st.integers(1, 9),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 3),
    TYPES,
    st.integers(0, 99),
)
def test_windows_are_words_that_begin_wherever_they_may_stand(
    device: str, taps: int, stride: int, dilation: int, pad: int, ttype: str, seed: int
) -> None:
    """Each channel by itself: of more taps than a word has, in steps, apart, over a border of zero points."""
    h, c, zero = 11, 5, LIMITS[ttype][1] - 3
    reach = dilation * (taps - 1) + 1
    assume(h + 2 * pad >= reach)
    rng = np.random.default_rng(seed)
    arrays = {"x": codes(rng, ttype, (h, c)), "w": codes(rng, "i8", (taps, c))}
    out = (h + 2 * pad - reach) // stride + 1
    at = f"{stride}*p + {dilation}*r - {pad}"
    read = f"where({at} >= 0 and {at} < {h}, i32(x[{at}, c]), {zero})" if pad else f"i32(x[{at}, c])"
    text = (f"y[p, c] = sum(r, {read} * i32(w[r, c]))", {"p": out, "c": c, "r": taps})
    graph = make_graph({"x": (h, c)}, [text], ["y"], {"w": (taps, c)}, ttypes={"x": ttype, "w": "i8"})
    after = with_units(with_constant(graph, "w", arrays["w"]), device)
    count = 2 if device == "avx2" else 4
    words = -(-taps // count)
    filled = 2 * taps >= count * words
    if dilation == 1 and filled and out > 2 and (words == 1 or count % stride == 0):
        assert functions(after) == [DEVICES[device]]
    padded = np.pad(arrays["x"].astype(np.int64), ((pad, pad), (0, 0)), constant_values=zero)
    rows = [padded[stride * p : stride * p + reach : dilation] for p in range(out)]
    exact = np.stack([(row * arrays["w"].astype(np.int64)).sum(0) for row in rows])
    np.testing.assert_array_equal(result(after, arrays), exact)


def test_moved_operands_cost_no_sum_at_run_time() -> None:
    """With constant weights that operand is moved whose partner is constant."""
    ttypes = {"x": "u8", "w": "u8"}
    text = ("y[i, n] = sum(k, i32(x[i, k]) * i32(w[k, n]))", {"i": 3, "n": 4, "k": 8})
    graph = make_graph({"x": (3, 8)}, [text], ["y"], {"w": (8, 4)}, ttypes=ttypes)
    after = with_units(with_constant(graph, "w", np.full((8, 4), 200, np.uint8)), "zen5-avx512")
    constants = constant_tensors(after)
    sums = [node.name for node in after.nodes if isinstance(node.expr.body, Reduce) and node.name not in constants]
    assert len(sums) == 1
    arrays = {"x": np.full((3, 8), 255, np.uint8), "w": np.full((8, 4), 200, np.uint8)}
    np.testing.assert_array_equal(result(after, arrays), np.full((3, 4), 8 * 255 * 200, np.int32))


@pytest.mark.parametrize(
    ("text", "extents", "read"),
    [
        ("y[i, n] = sum(k, i32(x[i, 2*k]) * i32(w[k, n]))", {"i": 3, "n": 8, "k": 4}, (3, 8)),
        ("y[i, n] = sum(k, where(k + i < 4, i32(x[i, k]), 0) * i32(w[k, n]))", {"i": 3, "n": 8, "k": 4}, (3, 4)),
    ],
    ids=["strided", "guard inside words"],
)
def test_words_are_neighbours_under_one_guard(text: str, extents: Mapping[str, int], read: tuple[int, int]) -> None:
    reduced, column = (extents[i] for i in (("r", "c") if "r" in extents else ("k", "n")))
    graph = make_graph({"x": read}, [(text, extents)], ["y"], {"w": (reduced, column)}, ttypes={"x": "u8", "w": "i8"})
    graph = with_constant(graph, "w", np.zeros((reduced, column), np.int8))
    assert functions(with_units(graph, "zen5-avx512")) == []
