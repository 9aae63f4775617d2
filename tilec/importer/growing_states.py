"""States that grow: an output is the input with rows appended. In place they have room for more rows than there are.

Their dimension is a size of its own then, the capacity. How many rows there are before a call, which the input's
dimension was to say, is told by the length of an input more, called as the size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilec.ir.expr import Binary, Expr, Var
from tilec.ir.graph import Graph, Port, Room, Tensor
from tilec.ir.sizes import Constraint, SymbolRange

CAPACITY = "capacity"

FITS = "a cache that is updated in place has room for all rows"

LIKELY = 2048
"""The capacity that plans are made for, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Growth:
    """A state with `rows`, a size, along a dimension, and `after` when others have been appended."""

    past: str
    present: str
    dim: int
    rows: str
    after: Expr


def growth_of(graph: Graph, past: str, present: str) -> Growth | None:
    """How a tensor may be another with rows appended: they differ along one dimension, where the first has a size."""
    before, after = graph.tensors.get(past), graph.tensors[present]
    if before is None or before.ttype != after.ttype or len(before.shape) != len(after.shape):
        return None
    apart = [dim for dim, (a, b) in enumerate(zip(before.shape, after.shape, strict=True)) if a != b]
    read = {port.tensor for call in graph.calls for port in call.inputs}
    if len(apart) != 1 or read & {past, present}:
        return None
    rows = before.shape[apart[0]]
    if not isinstance(rows, Var) or rows.name not in graph.symbols:
        return None
    return Growth(past, present, apart[0], rows.name, after.shape[apart[0]])


def with_rooms(graph: Graph, growing: Sequence[Growth]) -> Graph:
    """The graph with room in states that grow, which share a capacity where they share the number of rows."""
    for rows in dict.fromkeys(each.rows for each in growing):
        graph = _with_room(graph, rows, [each for each in growing if each.rows == rows])
    return graph


def _with_room(graph: Graph, rows: str, growing: Sequence[Growth]) -> Graph:
    capacity, told = free_name(CAPACITY, graph.names), free_name(f"{rows}_told", graph.names)
    port = Port(free_name(rows, frozenset(each.name for each in (*graph.inputs, *graph.outputs))), told)
    tensors = {**graph.tensors, told: Tensor((Var(rows),), "bool")}
    rooms: list[Room] = []
    fits: dict[Constraint, None] = {}
    for each in growing:
        fits[Constraint(Binary("<=", each.after, Var(capacity)), FITS)] = None
        for tensor, count in ((each.past, Var(rows)), (each.present, each.after)):
            shape = tuple(Var(capacity) if d == each.dim else e for d, e in enumerate(tensors[tensor].shape))
            tensors[tensor] = replace(tensors[tensor], shape=shape)
            rooms.append(Room(tensor, each.dim, count, port.name))
    return replace(
        graph,
        symbols=(*graph.symbols, capacity),
        inputs=(*graph.inputs, port),
        tensors=tensors,
        symbol_ranges={**graph.symbol_ranges, capacity: SymbolRange(likely=(LIKELY,))},
        constraints=(*graph.constraints, *fits),
        rooms=(*graph.rooms, *rooms),
    )


def free_name(wish: str, taken: frozenset[str]) -> str:
    """A name that is not taken: the one wished for, or it and a number."""
    name, number = wish, 1
    while name in taken:
        number += 1
        name = f"{wish}_{number}"
    return name
