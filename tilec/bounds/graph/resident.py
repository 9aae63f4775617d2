"""Resident intervals: intermediate results stay in the buffer whole, contractions stream only outside operands.

This is untiled fusion (Orojenesis, fusion) for intervals of a graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tilec.bounds.graph.intervals import MAX_NODES, NodeInterval, Surroundings
from tilec.bounds.graph.links import Reader
from tilec.ir.expr import Expr, Var, accesses, substitute
from tilec.ir.graph import Node


def resident_from(first: int, around: Surroundings, most: int | None = None) -> Iterator[NodeInterval]:
    """All resident intervals that begin at a position, with their minimal buffer in bytes, `most` if given.

    A contraction holds its result and earlier ones; of its operands from outside all but one are held, and that one is
    streamed once. A tensor with several readers is loaded again for each, or stays from the first to the last of them:
    there are intervals in which none stays, and intervals in which all up to some size do. A tensor that leaves counts
    as held until its last reader, inside the interval or not. From the first node, intervals may be as long as the
    graph.
    """
    steps: list[_Step] = []
    streamed = _Entering(first, around)
    for step in _steps(first, around):
        steps.append(step)
        streamed.add(step)
        if most is not None and streamed.need > most:
            break
        if interval := streamed.interval(step):
            yield interval
    previous = 0
    for largest in sorted({_rounded(size) for size in streamed.again}):
        staying = _Entering(first, around, largest, previous)
        for step in steps:
            staying.add(step)
            if most is not None and staying.need > most:
                break
            if staying.differs and (interval := staying.interval(step)):
                yield interval
        previous = largest


def _rounded(size: int) -> int:
    """The next power of 16 above a size, so that few sizes are tried."""
    return 1 << -(-size.bit_length() // 4) * 4


@dataclass(frozen=True)
class _Step:
    """A node of an interval: `made` bytes of results held while it is computed, operands from `outside`, bytes
    `leaving` by then, contractions so far; whether it is one."""

    node: Node
    made: int
    outside: Mapping[str, int]
    leaving: int
    readers: tuple[Reader, ...]
    contraction: bool


def _steps(first: int, around: Surroundings) -> Iterator[_Step]:
    alive: dict[str, int] = {}
    unread: dict[str, int] = {}
    holding = leaving = 0
    readers: tuple[Reader, ...] = ()
    for node in around.order[first : first + MAX_NODES if first else None]:
        name, size, reads = node.name, around.bytes[node.name], around.reads(node)
        # A node without a reduction overwrites operands that it is the last to read.
        over = 0 if node.expr.reduce else sum(alive[each] for each in reads if unread.get(each) == 1)
        peak = holding + max(0, size - over)
        outside = {each: touched for each, touched in reads.items() if each not in unread}
        for each in reads.keys() & unread.keys():
            unread[each] -= 1
            if not unread[each]:
                leaving -= 0 if each in around.results else around.bytes[each]
                holding -= alive.pop(each)
        unread[name] = around.readers[name]
        if unread[name]:
            alive[name] = size
            holding += size
        if unread[name] or name in around.results:
            leaving += size
        contraction = name in around.einsums
        if contraction:
            readers = (*readers, Reader(node, around.einsums[name]))
        yield _Step(node, peak, outside, leaving, readers, contraction)


@dataclass
class _Entering:
    """Loads of a resident interval under construction, and its buffer requirement `need` in bytes.

    Operands of at most `largest` bytes stay for further readers; the interval `differs` once one of more than
    `previous` bytes does. `again` has the sizes of all operands that could stay.
    """

    first: int
    around: Surroundings
    largest: int = 0
    previous: int = 0
    need: int = 0
    differs: bool = False
    again: set[int] = field(default_factory=set)
    _steps: list[_Step] = field(default_factory=list)
    _resident: list[set[str]] = field(default_factory=list)
    _last: dict[str, int] = field(default_factory=dict)
    _entered: dict[str, int] = field(default_factory=dict)
    _bytes: int = 0

    def add(self, step: _Step) -> None:
        """Add the next node."""
        now = changed = len(self._steps)
        self._steps.append(step)
        self._resident.append(set())
        for name, touched in step.outside.items():
            before, size, more = self._last.get(name), self.around.bytes[name], touched
            if before is not None and in_one_pass([each.node for each in self._steps[before:]], name):
                more = 0
            elif before is not None:
                self.again.add(size)
                if size <= self.largest:
                    for resident in self._resident[before:]:
                        resident.add(name)
                    changed = min(changed, before)
                    self.differs |= size > self.previous
                    more = min(touched, size - self._entered[name])
            self._last[name] = now
            self._entered[name] = min(size, self._entered.get(name, 0) + more)
            self._bytes += more
        self.need = max(self.need, *(self._needed(at) for at in range(changed, now + 1)))

    def _needed(self, at: int) -> int:
        """Bytes while a node is computed; of operands that it contracts and that do not stay, one is streamed."""
        step, resident = self._steps[at], self._resident[at]
        total = step.made + sum(self.around.bytes[name] for name in resident)
        if not step.contraction:
            return total
        return total + sum(sorted(size for name, size in step.outside.items() if name not in resident)[:-1])

    def interval(self, step: _Step) -> NodeInterval | None:
        """The interval up to a node; None for a single one without a contraction."""
        count = len(self._steps)
        if not step.readers and count == 1:
            return None
        side = self._bytes + step.leaving
        return NodeInterval(self.first, self.first + count, side, self.need, step.readers, resident=True)


def in_one_pass(nodes: Sequence[Node], name: str) -> bool:
    """Whether the last of some nodes, computed element by element together, reads the elements of a tensor that the
    first reads."""
    if any(node.expr.reduce or node.expr.extents != nodes[0].expr.extents for node in nodes):
        return False
    computed = {node.name for node in nodes}
    identity = tuple(Var(str(position)) for position in range(len(nodes[0].expr.spatial)))
    inside = (index for node in nodes for tensor, index in _reads(node) if tensor in computed)
    sources = [{index for tensor, index in _reads(node) if tensor == name} for node in (nodes[0], nodes[-1])]
    return sources[1] <= sources[0] and all(index == identity for index in inside)


def _reads(node: Node) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    """Tensors and indices that a node reads, over the positions of its result."""
    values: dict[str, Expr] = {name: Var(str(position)) for position, name in enumerate(node.expr.spatial)}
    for access in accesses(node.expr):
        yield access.tensor, tuple(substitute(index, values) for index in access.index)
