"""vector and contraction: which iterator runs along vectors, and what is packed or staged for it."""

import pytest
from scheduler.graphs import make_graph

from tilec.ir.expr import Access, Var
from tilec.ir.graph import Graph
from tilec.ir.text import parse_tensor
from tilec.scheduler.analysis.contraction import exclusive, is_contraction, operands_of, reuse
from tilec.scheduler.analysis.vector_iterator import Vector, staged_order, vector_of
from tilec.spec.machine_costs import CpuCosts

E = {"m": 12, "n": 16, "k": 8, "c": 16, "h": 5, "w": 5, "r": 3, "s": 3, "t": 9, "d": 4, "o": 16, "b": 2}


def vector(text: str, **inputs: tuple[int, ...]) -> Vector:
    graph = make_graph(inputs, [(text, E)], [text.split("[")[0]])
    return vector_of(graph.nodes[-1].expr, graph, frozenset({"w", "bias"}), CpuCosts())


@pytest.mark.feature("W39")
def test_output_channels_are_the_vector_and_weights_are_packed() -> None:
    found = vector("y[m, n] = sum(k, a[m, k] * w[n, k])", a=(12, 8), w=(16, 8))
    assert (found.kind, found.iterator) == ("spatial", "n")
    assert [a.tensor for a in found.packed] == ["w"]


def test_an_activation_is_staged_where_it_is_reused() -> None:
    found = vector("y[m, t] = sum(d, a[m, d] * v[t, d])", a=(12, 4), v=(9, 4))
    assert (found.kind, found.iterator) == ("spatial", "t")
    assert [a.tensor for a in found.staged] == ["v"]
    once = vector("y[t] = sum(d, a[d] * v[t, d])", a=(4,), v=(9, 4))
    assert (once.kind, once.iterator) == ("reduce", "d")


def test_row_reductions_run_along_the_row() -> None:
    found = vector("y[m] = max(k, a[m, k])", a=(12, 8))
    assert (found.kind, found.iterator) == ("reduce", "k")


def test_column_reductions_run_across() -> None:
    found = vector("y[n] = sum(m, a[m, n])", a=(12, 16))
    assert (found.kind, found.iterator) == ("spatial", "n")


def test_depthwise_convolutions_run_along_channels() -> None:
    found = vector("y[h, c] = sum(r, a[h + r, c] * w[c, r])", a=(7, 16), w=(16, 3))
    assert (found.kind, found.iterator) == ("spatial", "c")
    assert [a.tensor for a in found.packed] == ["w"]


def test_what_is_strided_for_good_has_no_vector() -> None:
    assert vector("y[m, n] = a[n, m] + 1.0", a=(16, 12)).kind == "none"
    assert vector("y[m] = sum(k, a[k, m*2])", a=(8, 23)).kind == "none"


def test_staged_order_puts_the_dimension_last() -> None:
    expr = parse_tensor("Y[m, t] = sum(d, Q[m, d] * K[b, t, d])", {**E, "b": 1})
    assert staged_order(Access("K", (Var("b"), Var("t"), Var("d"))), expr, "t") == (0, 2, 1)
    assert staged_order(Access("K", (Var("t"), Var("t"))), expr, "t") is None
    assert staged_order(parse_tensor("Z[t] = K[t*2]", E).body, expr, "t") is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Y[m, n] = sum(k, A[m, k] * B[k, n])", True),
        ("Y[h, c] = sum(r, A[h + r, c] * B[c, r])", True),
        ("Y[m] = sum(k, A[m, k] * B[m, k])", False),
        ("Y[m] = sum(k, (A[m, k] - B[m]) * (A[m, k] - B[m]))", False),
        ("Y[m, n] = A[m] * B[n]", False),
        ("Y[m] = sum(k, A[m, k])", False),
    ],
)
def test_contractions_reuse_an_operand(text: str, expected: bool) -> None:
    assert is_contraction(parse_tensor(text, E)) is expected


def test_exclusive_iterators_see_through_groups() -> None:
    grouped = parse_tensor("Y[o, h] = sum(c, X[o // 8 * 16 + c, h] * W[o, c])", E)
    assert exclusive(grouped, {"W"}) == ("o",)
    depthwise = parse_tensor("Y[o, h] = sum(r, X[o, h + r] * W[o, r])", E)
    assert exclusive(depthwise, {"W"}) == ()
    assert exclusive(depthwise, {"X"}) == ("h",)


def test_reuse_counts_the_points_that_share_an_element() -> None:
    expr = parse_tensor("Y[b, m, n] = sum(k, A[b, m, k] * B[k, n])", E)
    a, b = operands_of(expr)
    assert reuse(expr, a) == 16
    assert reuse(expr, b) == 24


def test_graph_constants_are_what_packing_needs() -> None:
    graph: Graph = make_graph({"a": (12, 8)}, [("y[m, n] = sum(k, a[m, k] * w[k, n])", E)], ["y"], {"w": (8, 16)})
    assert vector_of(graph.nodes[0].expr, graph, frozenset({"w"}), CpuCosts()).packed == ()
