"""unflatten: iterators over products of sizes that vary become iterators over the factors."""

from collections.abc import Mapping, Sequence
from itertools import product

import pytest
from scheduler.graphs import Shape, assert_same, make_graph, size

from tilec.ir.algebra import simplify
from tilec.ir.graph import Graph
from tilec.ir.text import tensor_text, text_of
from tilec.scheduler.graph_passes.compose import compose
from tilec.scheduler.graph_passes.unflatten import factors_of, unflatten
from tilec.scheduler.refusals import RewrittenGraph

Nodes = Sequence[tuple[str, Mapping[str, int | str]]]


def texts(graph: Graph) -> dict[str, str]:
    return {node.name: tensor_text(node.expr) for node in graph.nodes}


def rewritten(nodes: Nodes, outputs: Sequence[str], symbols: Sequence[str] = ("b", "s"), **inputs: Shape) -> Graph:
    """The graph behind the pass, which computes the same at all small sizes."""
    graph = make_graph(inputs, nodes, outputs, symbols=symbols)
    after = unflatten(RewrittenGraph(graph)).graph
    for sizes in product((0, 1, 3), repeat=len(symbols)):
        assert_same(graph, after, dict(zip(symbols, sizes, strict=True)))
    return after


def mlp(output: str = "z") -> Graph:
    e: dict[str, int | str] = {"m": "b*s", "k": 5, "n": 4, "b_": "b", "s_": "s"}
    nodes = [
        ("f[m, k] = x[m // s, m % s, k]", e),
        ("y[m, n] = sum(k, f[m, k] * w[k, n])", e),
        ("a[m, n] = maximum(y[m, n], 0)", e),
        ("z[b_, s_, n] = a[b_*s + s_, n]", e),
    ]
    return rewritten(nodes, list(dict.fromkeys(["z", output])), x=("b", "s", 5), w=(5, 4))


def test_a_flattened_product_is_computed_over_its_factors() -> None:
    after = mlp()
    assert texts(after) == {
        "f": "f[m1, m2, k] = x[m1, m2, k]",
        "y": "y[m1, m2, n] = sum(k, f[m1, m2, k] * w[k, n])",
        "a": "a[m1, m2, n] = maximum(y[m1, m2, n], 0)",
        "z": "z[b_, s_, n] = a[b_, s_, n]",
    }
    composed = compose(RewrittenGraph(after)).graph
    assert texts(composed)["y"] == "y[m1, m2, n] = sum(k, x[m1, m2, k] * w[k, n])"


def test_a_flattened_output_stays_with_all_that_runs_along_it() -> None:
    assert texts(mlp(output="a"))["y"] == "y[m, n] = sum(k, f[m, k] * w[k, n])"


def test_heads_and_reductions_are_split_too() -> None:
    e: dict[str, int | str] = {"p": "b*s*3", "r": "b*s*3", "h": "b*3", "s_": "s", "b_": "b", "g": 3}
    nodes = [
        ("u[h, s_] = x[h // 3, h % 3, s_]", e),
        ("v[p] = u[p // s, p % s]", e),
        ("w[h, s_] = v[h*s + s_] * 2", e),
        ("z[b_, g, s_] = w[b_*3 + g, s_]", e),
        ("t[g] = sum(r, x[r // s // 3, r // s % 3, r % s] * v[r])", e),
    ]
    after = rewritten(nodes, ["z", "t"], x=("b", 3, "s"))
    assert texts(after)["v"] == "v[p1, p2, p3] = u[p1, p2, p3]"
    assert texts(after)["w"] == "w[h1, h2, s_] = v[h1, h2, s_] * 2"
    assert texts(after)["t"] == "t[g] = sum(r1, r2, r3, x[r1, r2, r3] * v[r1, r2, r3])"


@pytest.mark.parametrize(
    "reader",
    ["z[m] = y[m + 1]", "z[m] = y[(m*2 + 1) // 2]", "z[m] = y[i32(x[m // s, 0]) * 0]"],
    ids=["moved", "scaled", "by data"],
)
def test_a_reader_that_sees_no_factors_keeps_its_index(reader: str) -> None:
    e: dict[str, int | str] = {"m": "b*s - 1", "n": "b*s", "b_": "b"}
    graph = make_graph({"x": ("b", "s")}, [("y[n] = x[n // s, n % s] * 2", e), (reader, e)], ["z"], symbols=("b", "s"))
    draft = RewrittenGraph(graph)
    assert unflatten(draft) is draft


def test_what_runs_backward_has_no_negative_factors() -> None:
    e: dict[str, int | str] = {"m": "s", "n": "s", "k": 5}
    after = rewritten([("y[m, k] = x[m, k] * 2.0", e), ("z[n, k] = y[s - 1 - n, k]", e)], ["z"], x=("s", 5))
    assert texts(after)["z"] == "z[n, k] = y[s - 1 - n, k]"
    e = {"m": "b*s", "b_": "b", "s_": "s"}
    nodes = [("y[m] = x[m // s, m % s] * 2.0", e), ("z[b_, s_] = y[b*s - 1 - b_*s - s_]", e)]
    after = rewritten(nodes, ["z"], x=("b", "s"))
    assert texts(after)["y"] == "y[m1, m2] = x[m1, m2] * 2.0"


def test_numbers_stay() -> None:
    e = {"m": 6, "i": 2, "j": 3}
    nodes = [("y[m] = x[m // 3, m % 3] * 2", e), ("z[i, j] = y[i*3 + j]", e)]
    draft = RewrittenGraph(make_graph({"x": (2, 3)}, nodes, ["z"]))
    assert unflatten(draft) is draft


@pytest.mark.parametrize(
    ("extent", "divisors", "expected"),
    [
        ("b*s", ["s"], ["b", "s"]),
        ("b*12*s", ["s", "12*s", "4*s"], ["b", "12", "s"]),
        ("b*64", ["8", "64", "1", "b*64"], ["b", "64"]),
        ("b*(s // 2)", ["s // 2"], ["b", "s // 2"]),
        ("b*s", ["b", "s"], []),
        ("b*s", ["3"], []),
        ("b*6", ["2", "3"], []),
    ],
)
def test_extents_fall_into_the_factors_of_divisors_that_nest(
    extent: str, divisors: list[str], expected: list[str]
) -> None:
    found = factors_of(size(extent), frozenset(simplify(size(divisor)) for divisor in divisors))
    assert [text_of(factor) for factor in found] == expected
