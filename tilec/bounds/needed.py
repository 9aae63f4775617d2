"""What a graph moves with any buffer: inputs and constants that its outputs surely need, and the outputs."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from tilec.bounds.contractions import bits_of, bytes_of, node_einsum
from tilec.bounds.lower import needed
from tilec.ir.evaluate import integer
from tilec.ir.expr import Access, Call, TensorExpr, accesses, bound, variables, walk
from tilec.ir.graph import Graph, Node, Tensor

_MOST = 1 << 22
"""Points at which indices that are not affine are looked at."""


def compulsory(graph: Graph) -> int:
    """Bytes that enter and leave a graph with any buffer.

    What a node reads counts only where all of its results are needed, and elements that it surely reads.
    """
    made = {node.name for node in graph.nodes}
    whole = {port.tensor for port in graph.outputs if port.tensor in made}
    moved = sum(bytes_of(graph.tensors[name]) for name in whole)
    entering: dict[str, int] = {}
    for node in reversed(graph.nodes):
        for name, size in _read(node, graph.tensors).items() if node.name in whole else ():
            if name not in made:
                entering[name] = max(entering.get(name, 0), size)
            elif size == bytes_of(graph.tensors[name]):
                whole.add(name)
    return moved + sum(entering.values())


def _read(node: Node, tensors: Mapping[str, Tensor]) -> dict[str, int]:
    """Bytes of every tensor that all elements of a node surely need together."""
    einsum = node_einsum(node, tensors)
    if einsum is not None:
        return {name: -(-bits // 8) for name, bits in needed(einsum).items() if name != node.name}
    return {name: -(-count * bits_of(tensors[name]) // 8) for name, count in _elements(node.expr).items()}


def _elements(expr: TensorExpr) -> dict[str, int]:
    """Elements read by an expression that always reads all its operands, at indices that no data decide."""
    guarded = any(isinstance(part, Call) and part.fn == "where" for part in walk(expr.body))
    if guarded or 0 in map(bound, expr.extents):
        return {}
    found: dict[str, int] = {}
    for access in accesses(expr):
        found[access.tensor] = max(found.get(access.tensor, 0), _different(access, expr))
    return found


def _different(access: Access, expr: TensorExpr) -> int:
    """How many elements one access reads; 0 where data decide or too many points would have to be looked at."""
    extents = {name: bound(extent) for name, extent in expr.domain.items()}
    groups: list[tuple[frozenset[str], list[int]]] = []
    for position, index in enumerate(access.index):
        names = variables(index)
        if any(isinstance(part, Access) for part in walk(index)) or not names <= extents.keys():
            return 0
        members = [position]
        for group in [group for group in groups if group[0] & names]:
            groups.remove(group)
            names, members = names | group[0], members + group[1]
        groups.append((names, members))
    return prod(
        _values(access, members, {name: extents[name] or 0 for name in sorted(names)}) for names, members in groups
    )


def _values(access: Access, positions: list[int], extents: Mapping[str, int]) -> int:
    """How many different values some indices take together."""
    if prod(extents.values()) > _MOST:
        return 0
    grid = np.meshgrid(*(np.arange(size) for size in extents.values()), indexing="ij") if extents else []
    points = dict(zip(extents, grid, strict=True))
    shape = grid[0].shape if grid else ()
    values = [np.broadcast_to(integer(access.index[position], points), shape).ravel() for position in positions]
    return int(np.unique(np.stack(values), axis=1).shape[1])
