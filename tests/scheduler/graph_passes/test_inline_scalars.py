"""literals and rewriting: one-element constants become literals; what nothing reads disappears."""

from dataclasses import replace

from scheduler.graphs import assert_same, make_graph

from tilec.ir.expr import Access, Const, Var, accesses, walk
from tilec.ir.graph import Inline
from tilec.ir.text import parse_expr, parse_tensor, tensor_text
from tilec.scheduler.graph_passes.inline_scalars import inline_scalars
from tilec.scheduler.graph_passes.rewrite import (
    constant_tensors,
    fresh,
    live,
    merge_guards,
    rename_iterators,
    substitute_accesses,
    with_nodes,
)
from tilec.scheduler.refusals import RewrittenGraph


def test_constants_of_one_element_become_literals() -> None:
    graph = make_graph({"x": (3,)}, [("y[i] = x[i] * f[()] + g[0]", {"i": 3})], ["y"], {"f": (), "g": (1,)})
    after = inline_scalars(RewrittenGraph(graph)).graph
    assert_same(graph, after)
    assert [a.tensor for a in accesses(after.nodes[0].expr)] == ["x"]
    assert not after.constants


def test_a_literal_that_would_leave_no_type_stays_a_tensor() -> None:
    graph = make_graph({"x": (3,)}, [("y[i] = where(x[i] > 0.0, f[()], g[()])", {"i": 3})], ["y"], {"f": (), "g": ()})
    graph = replace(graph, constants={"f": Inline((1.5,)), "g": Inline((2.5,))})
    after = inline_scalars(RewrittenGraph(graph)).graph
    assert_same(graph, after)


def test_live_drops_what_no_output_needs() -> None:
    e = {"i": 3}
    graph = make_graph(
        {"x": (3,)}, [("a[i] = x[i] + 1.0", e), ("b[i] = a[i] * c[i]", e), ("y[i] = a[i]", e)], ["y"], {"c": (3,)}
    )
    kept = live(graph)
    assert [node.name for node in kept.nodes] == ["a", "y"]
    assert set(kept.tensors) == {"x", "a", "y"}
    assert not kept.constants


def test_constant_tensors_are_closed_under_computation() -> None:
    e = {"i": 3}
    nodes = [("a[i] = c[i] + 1.0", e), ("b[i] = a[i] * 2.0", e), ("y[i] = x[i] + b[i]", e)]
    graph = make_graph({"x": (3,)}, nodes, ["y"], {"c": (3,)})
    assert constant_tensors(graph) == {"c", "a", "b"}


def test_nested_guards_with_one_fallback_merge() -> None:
    expr = parse_tensor("Y[i] = where(i > 1, where(i < 5, X[i], 0.0), 0.0)", {"i": 8})
    assert tensor_text(merge_guards(expr)) == "Y[i] = where(i > 1 and i < 5, X[i], 0.0)"
    other = parse_tensor("Y[i] = where(i > 1, where(i < 5, X[i], 1.0), 0.0)", {"i": 8})
    assert merge_guards(other) == other


def test_substitution_evaluates_the_producer_at_the_index() -> None:
    producer = parse_tensor("P[a, b] = X[b, a] * 2.0", {"a": 3, "b": 4})
    assert substitute_accesses(parse_expr("P[i, j + 1] + P[0, i]"), producer) == parse_expr(
        "X[j + 1, i] * 2.0 + X[i, 0] * 2.0"
    )


def test_renaming_avoids_names_and_keeps_meaning() -> None:
    expr = parse_tensor("Y[i] = sum(k, X[i, k])", {"i": 3, "k": 4})
    renamed = rename_iterators(expr, frozenset({"k", "k1"}))
    assert tensor_text(renamed) == "Y[i] = sum(k2, X[i, k2])"
    assert rename_iterators(expr, frozenset({"z"})) == expr
    assert fresh("k", {"k1", "k2"}) == "k3"
    assert all(not isinstance(e, Access) or e.index != (Const(0),) for e in walk(renamed.body))


def test_new_names_are_not_those_of_sizes() -> None:
    """Exporters call sizes `s1` and `s77`; what a pass makes may want such names."""
    e = {"i": "s1", "j": "y_sum1"}
    graph = make_graph({"x": ("s1", "y_sum1")}, [("y[i, j] = x[i, j] + 1.0", e)], ["y"], symbols=["s1", "y_sum1"])
    assert {"x", "y", "s1", "y_sum1"} == graph.names
    assert fresh("y_sum", graph.names) == "y_sum2"
    (node,) = graph.nodes
    split = replace(node, expr=replace(node.expr, spatial=("s1", "j"), body=parse_expr("x[s1, j] + 1.0")))
    rewritten = with_nodes(graph, [split])
    assert rewritten.nodes[0].expr.spatial == ("s11", "j")
    assert rewritten.nodes[0].expr.extents == (Var("s1"), Var("y_sum1"))
    assert_same(graph, rewritten, {"s1": 3, "y_sum1": 2})


def test_iterators_are_renamed_past_the_sizes_of_their_expression() -> None:
    expr = parse_tensor("y[k] = x[k] * k1", {"k": 4})
    assert tensor_text(rename_iterators(expr, frozenset({"k"}))) == "y[k2] = x[k2] * k1"
