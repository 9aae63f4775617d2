"""An order of a graph's nodes in which chains stand together: what a node needs besides comes before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.ir.expr import operands
from tilec.ir.graph import Graph, Node


def chained(graph: Graph, contractions: frozenset[str]) -> tuple[Node, ...]:
    """The nodes in topological order, the operand behind most `contractions` last, right before its reader."""
    made = {node.name: node for node in graph.nodes}
    depth: dict[str, int] = {}
    for node in graph.nodes:
        below = max((depth.get(name, 0) for name in operands(node.expr)), default=0)
        depth[node.name] = below + (node.name in contractions)
    found: dict[str, Node] = {}
    results = sorted((made[port.tensor] for port in graph.outputs if port.tensor in made), key=lambda n: depth[n.name])
    for node in (*results, *graph.nodes):
        _visit(node, made, depth, found)
    return tuple(found.values())


def _visit(last: Node, made: Mapping[str, Node], depth: Mapping[str, int], found: dict[str, Node]) -> None:
    """Add a node behind everything that it needs."""
    waiting: list[tuple[Node, bool]] = [(last, False)]
    while waiting:
        node, ready = waiting.pop()
        if node.name in found:
            continue
        if ready:
            found[node.name] = node
            continue
        waiting.append((node, True))
        waiting += [(made[name], False) for name in _last_first(node, depth) if name in made and name not in found]


def _last_first(node: Node, depth: Mapping[str, int]) -> Sequence[str]:
    """Operands in the order in which a stack takes them: the deepest goes on first, of equals the first."""
    return sorted(operands(node.expr), key=lambda name: -depth.get(name, 0))
