"""States with room of which valid rows alone are read: their number is a size, told by the length of one more input.

Such a state has room for all tokens, as transformers' `StaticCache`, and its form says by a mask alone which rows there
are. What reads it loops over all of them, until those behind the last one are found to count for nothing
(`tilec.importer.masked_rows`): then all that has a dimension of its rows has that of the valid ones instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tilec.importer.growing_states import FITS, free_name
from tilec.importer.masked_rows import Behind
from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Binary, Expr, Var, accesses
from tilec.ir.graph import Graph, IndexRange, Node, Port, Room, Tensor
from tilec.ir.sizes import Constraint

EARLIER = "past_rows"
"""The size, and the input, that tell how many rows there are before a call."""


@dataclass(frozen=True, slots=True)
class _Told:
    """The size that is the number of earlier rows, and the input whose length it is."""

    symbol: str
    tensor: str
    port: str


@dataclass(frozen=True, slots=True)
class _State:
    """A state before and after a call, with `room` for rows along a dimension, of which `new` are written."""

    past: str
    present: str
    dim: int
    room: Expr
    new: Expr


def with_valid_rows(graph: Graph) -> Graph:
    """The graph in which valid rows of its states are read alone, where a mask says that the others count for
    nothing; as it is where that is not certain."""
    ports = frozenset(port.name for port in (*graph.inputs, *graph.outputs))
    symbol = free_name(EARLIER, graph.names)
    told = _Told(symbol, free_name(f"{symbol}_told", graph.names), free_name(EARLIER, ports))
    for room, new in dict.fromkeys((each.room, each.new) for each in _states(graph)):
        states = [each for each in _states(graph) if (each.room, each.new) == (room, new)]
        end = simplify(Binary("+", Var(told.symbol), new))
        shrunk = _Shrunk(graph, room)
        if not all(shrunk.mark(each.present, each.dim) for each in states) or not shrunk.spread() or not shrunk.rows:
            continue
        demands = shrunk.demands(end)
        if demands is not None:
            graph = _told(_with_rows(graph, shrunk, end), states, told, end, demands)
    return graph


def _states(graph: Graph) -> list[_State]:
    """The states of fixed room into which rows are written along one dimension."""
    grown = {room.tensor for room in graph.rooms}
    found = []
    for update, present in (each for call in graph.calls for each in call.updated):
        whole, rows = graph.tensors[present].shape, graph.tensors[update.rows].shape
        apart = [dim for dim, (a, b) in enumerate(zip(whole, rows, strict=True)) if a != b]
        if present not in grown and len(apart) == 1:
            found.append(_State(update.state, present, apart[0], whole[apart[0]], rows[apart[0]]))
    return found


@dataclass(slots=True)
class _Shrunk:
    """The dimension of rows of each tensor that has one, and the iterator of rows of each node."""

    graph: Graph
    room: Expr
    dims: dict[str, int] = field(default_factory=dict)
    rows: dict[str, str] = field(default_factory=dict)
    _pending: list[str] = field(default_factory=list)

    def mark(self, tensor: str, dim: int) -> bool:
        """Let a tensor have rows along a dimension; False where it has them along another, or is read elsewhere."""
        if self.dims.setdefault(tensor, dim) != dim:
            return False
        self._pending.append(tensor)
        return True

    def spread(self) -> bool:
        """Find the rows of all that reads, or is read with, what has some. False where a node reads them otherwise
        than one after another."""
        nodes = {node.name: node for node in self.graph.nodes}
        consumers = self.graph.consumers()
        outside = {port.tensor for port in self.graph.outputs}
        outside |= {port.tensor for call in self.graph.calls for port in call.inputs}
        done: set[str] = set()
        while self._pending:
            tensor = self._pending.pop()
            if tensor in done:
                continue
            done.add(tensor)
            if tensor in nodes and (tensor in outside or not self._iterates(nodes[tensor], self.dims[tensor])):
                return False
            if not all(self._reads(node, tensor) for node in consumers[tensor]):
                return False
        return True

    def _iterates(self, node: Node, dim: int) -> bool:
        """Note the iterator of rows of a node that has them along a dimension."""
        return self._follow(node, node.expr.spatial[dim])

    def _reads(self, node: Node, tensor: str) -> bool:
        """Note the iterator by which a node reads rows."""
        read = {each.index[self.dims[tensor]] for each in accesses(node.expr.value) if each.tensor == tensor}
        match list(read):
            case [Var(name)] if node.expr.domain.get(name) == self.room:
                return self._follow(node, name)
        return False

    def _follow(self, node: Node, row: str) -> bool:
        if self.rows.setdefault(node.name, row) != row:
            return False
        expr = node.expr
        if row in expr.spatial and not self.mark(node.name, expr.spatial.index(row)):
            return False
        return all(self._share(each, row) for each in accesses(expr.value))

    def _share(self, access: Access, row: str) -> bool:
        """Let what a node reads along its rows have no others, if a node makes it."""
        along = [dim for dim, index in enumerate(access.index) if index == Var(row)]
        made = any(node.name == access.tensor for node in self.graph.nodes)
        if not made or not along or self.graph.tensors[access.tensor].shape[along[0]] != self.room:
            return True
        return len(along) == 1 and (access.tensor in self.dims or self.mark(access.tensor, along[0]))

    def demands(self, end: Expr) -> Sequence[IndexRange] | None:
        """What inputs must fulfil for rows from `end` on to count for nothing; None where they count."""
        behind = Behind(self.graph, end)
        for node in self.graph.nodes:
            if node.name in self.rows:
                held = behind.of(node, self.rows[node.name])
                if held is None:
                    return None
                behind.held[node.name] = held
        return tuple(dict.fromkeys(behind.demands))


def _with_rows(graph: Graph, shrunk: _Shrunk, end: Expr) -> Graph:
    """The graph with `end` rows wherever there were all."""
    tensors: dict[str, Tensor] = dict(graph.tensors)
    nodes = []
    for node in graph.nodes:
        row = shrunk.rows.get(node.name)
        if row is not None:
            extents = tuple(end if name == row else extent for name, extent in node.expr.domain.items())
            node = replace(node, expr=replace(node.expr, extents=extents))
            tensors[node.name] = replace(tensors[node.name], shape=node.expr.shape)
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes), tensors=tensors)


def _told(graph: Graph, states: Sequence[_State], told: _Told, end: Expr, demands: Sequence[IndexRange]) -> Graph:
    """The graph with the input that tells how many rows its states have before a call."""
    known = told.symbol in graph.symbols
    rooms = tuple(Room(tensor, s.dim, s.room, told.port) for s in states for tensor in (s.past, s.present))
    return replace(
        graph,
        symbols=graph.symbols if known else (*graph.symbols, told.symbol),
        inputs=graph.inputs if known else (*graph.inputs, Port(told.port, told.tensor)),
        tensors={**graph.tensors, told.tensor: Tensor((Var(told.symbol),), "bool")},
        constraints=(*graph.constraints, Constraint(Binary("<=", end, states[0].room), FITS)),
        ranges=tuple(dict.fromkeys((*graph.ranges, *demands))),
        rooms=(*graph.rooms, *rooms),
    )
