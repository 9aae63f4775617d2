"""Topological order of a graph in which chains are contiguous: further operands come before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.ir.expr import operands
from tilec.ir.graph import Graph, Node


def chained(graph: Graph, contractions: frozenset[str]) -> tuple[Node, ...]:
    """The nodes in topological order; the operand behind most `contractions` comes last, right before its reader."""
    by_name = {node.name: node for node in graph.nodes}
    depth: dict[str, int] = {}
    for node in graph.nodes:
        below = max((depth.get(name, 0) for name in operands(node.expr)), default=0)
        depth[node.name] = below + (node.name in contractions)
    ordered: dict[str, Node] = {}
    results = sorted(
        (by_name[port.tensor] for port in graph.outputs if port.tensor in by_name), key=lambda n: depth[n.name]
    )
    for node in (*results, *graph.nodes):
        _visit(node, by_name, depth, ordered)
    return tuple(ordered.values())


def _visit(last: Node, by_name: Mapping[str, Node], depth: Mapping[str, int], ordered: dict[str, Node]) -> None:
    """Add a node behind all its operands."""
    waiting: list[tuple[Node, bool]] = [(last, False)]
    while waiting:
        node, ready = waiting.pop()
        if node.name in ordered:
            continue
        if ready:
            ordered[node.name] = node
            continue
        waiting.append((node, True))
        waiting += [
            (by_name[name], False) for name in _last_first(node, depth) if name in by_name and name not in ordered
        ]


def _last_first(node: Node, depth: Mapping[str, int]) -> Sequence[str]:
    """Operands in the order in which they are pushed on a stack: the deepest first, of equals the first."""
    return sorted(operands(node.expr), key=lambda name: -depth.get(name, 0))
