from __future__ import annotations

from bounds.graphs import graph
from tilec.bounds.graph.order import chained
from tilec.ir.expr import operands

SQUARE = {"m": 4, "n": 4, "k": 4}


def test_chains_stand_together_behind_what_else_they_need() -> None:
    # Queries, keys, products of both, in the order in which an importer meets them.
    nodes = [
        ("q[m, n] = sum(k, x[m, k] * v[k, n])", SQUARE),
        ("k_[m, n] = sum(k, x[m, k] * w[k, n])", SQUARE),
        ("scaled[m, n] = k_[m, n] * 2.0", {"m": 4, "n": 4}),
        ("s[m, n] = sum(k, q[m, k] * scaled[n, k])", SQUARE),
        ("e[m, n] = exp(s[m, n])", {"m": 4, "n": 4}),
        ("y[m, n] = e[m, n] + x[m, n]", {"m": 4, "n": 4}),
        ("dead[m, n] = x[m, n] * 3.0", {"m": 4, "n": 4}),
    ]
    found = graph({"x": (4, 4), "v": (4, 4), "w": (4, 4)}, nodes, ["y"])
    order = chained(found, frozenset({"q", "k_", "s"}))
    assert [node.name for node in order] == ["k_", "scaled", "q", "s", "e", "y", "dead"]
    seen: set[str] = {"x", "v", "w"}
    for node in order:
        assert seen.issuperset(operands(node.expr))
        seen.add(node.name)
