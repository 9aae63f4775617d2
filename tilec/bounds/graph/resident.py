"""Runs whose intermediate results stay in the buffer as a whole, so that contractions stream only what comes from
outside (untiled fusion, O16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tilec.bounds.graph.intervals import MAX_NODES, NodeInterval, Surroundings
from tilec.bounds.graph.links import Reader
from tilec.ir.expr import Expr, Var, accesses, substitute
from tilec.ir.graph import Node


def resident_from(first: int, around: Surroundings, most: int | None = None) -> Iterator[NodeInterval]:
    """All such runs that begin at a position, with the bytes of buffer that each takes at least, `most` if given.

    A contraction holds its result and what was made before; of operands from outside all but one are held, and that
    one comes in once.  What several nodes read comes in again for each, or stays from the first to the last of them:
    there are runs in which nothing stays, and runs in which all up to some size do.  A tensor that leaves counts as
    held until its last reader, in the run or not.  From the first node runs may be as long as the graph.
    """
    steps: list[_Step] = []
    streamed = _Entering(first, around)
    for step in _steps(first, around):
        steps.append(step)
        streamed.add(step)
        if most is not None and streamed.need > most:
            break
        if run := streamed.run(step):
            yield run
    told = 0
    for largest in sorted({_rounded(size) for size in streamed.again}):
        staying = _Entering(first, around, largest, told)
        for step in steps:
            staying.add(step)
            if most is not None and staying.need > most:
                break
            if staying.differs and (run := staying.run(step)):
                yield run
        told = largest


def _rounded(size: int) -> int:
    """A power of 16 above a size: few are tried."""
    return 1 << -(-size.bit_length() // 4) * 4


@dataclass(frozen=True)
class _Step:
    """A node of a run: `made` bytes of results that are held while it is computed, operands from `outside`, bytes
    that are `leaving` by then, contractions so far; whether it is one."""

    node: Node
    made: int
    outside: Mapping[str, int]
    leaving: int
    readers: tuple[Reader, ...]
    contraction: bool


def _steps(first: int, around: Surroundings) -> Iterator[_Step]:
    held: dict[str, int] = {}
    unread: dict[str, int] = {}
    holding = leaving = 0
    readers: tuple[Reader, ...] = ()
    for node in around.order[first : first + MAX_NODES if first else None]:
        name, size, reads = node.name, around.bytes[node.name], around.reads(node)
        # What does not reduce writes over what it reads last.
        over = 0 if node.expr.reduce else sum(held[each] for each in reads if unread.get(each) == 1)
        made = holding + max(0, size - over)
        outside = {each: touched for each, touched in reads.items() if each not in unread}
        for each in reads.keys() & unread.keys():
            unread[each] -= 1
            if not unread[each]:
                leaving -= 0 if each in around.results else around.bytes[each]
                holding -= held.pop(each)
        unread[name] = around.readers[name]
        if unread[name]:
            held[name] = size
            holding += size
        if unread[name] or name in around.results:
            leaving += size
        contraction = name in around.einsums
        if contraction:
            readers = (*readers, Reader(node, around.einsums[name]))
        yield _Step(node, made, outside, leaving, readers, contraction)


@dataclass
class _Entering:
    """What comes in for a run that takes one node after the other, and the buffer that it `need`s.

    Operands of at most `largest` bytes stay for further readers; the run `differs` once one of more than `told` bytes
    does.  `again` has the sizes of all that could stay.
    """

    first: int
    around: Surroundings
    largest: int = 0
    told: int = 0
    need: int = 0
    differs: bool = False
    again: set[int] = field(default_factory=set)
    _steps: list[_Step] = field(default_factory=list)
    _kept: list[set[str]] = field(default_factory=list)
    _last: dict[str, int] = field(default_factory=dict)
    _entered: dict[str, int] = field(default_factory=dict)
    _bytes: int = 0

    def add(self, step: _Step) -> None:
        """Take the next node."""
        now = changed = len(self._steps)
        self._steps.append(step)
        self._kept.append(set())
        for name, touched in step.outside.items():
            before, size, more = self._last.get(name), self.around.bytes[name], touched
            if before is not None and in_one_pass([each.node for each in self._steps[before:]], name):
                more = 0
            elif before is not None:
                self.again.add(size)
                if size <= self.largest:
                    for kept in self._kept[before:]:
                        kept.add(name)
                    changed = min(changed, before)
                    self.differs |= size > self.told
                    more = min(touched, size - self._entered[name])
            self._last[name] = now
            self._entered[name] = min(size, self._entered.get(name, 0) + more)
            self._bytes += more
        self.need = max(self.need, *(self._needed(at) for at in range(changed, now + 1)))

    def _needed(self, at: int) -> int:
        """Bytes while a node is computed; of operands that it contracts and that do not stay one is not held."""
        step, kept = self._steps[at], self._kept[at]
        held = step.made + sum(self.around.bytes[name] for name in kept)
        if not step.contraction:
            return held
        return held + sum(sorted(size for name, size in step.outside.items() if name not in kept)[:-1])

    def run(self, step: _Step) -> NodeInterval | None:
        """The run up to a node; None where it is a single one without a contraction."""
        count = len(self._steps)
        if not step.readers and count == 1:
            return None
        side = self._bytes + step.leaving
        return NodeInterval(self.first, self.first + count, side, self.need, step.readers, resident=True)


def in_one_pass(nodes: Sequence[Node], name: str) -> bool:
    """Whether the last of some nodes, computed element by element together, reads of a tensor what the first reads."""
    if any(node.expr.reduce or node.expr.extents != nodes[0].expr.extents for node in nodes):
        return False
    made = {node.name for node in nodes}
    own = tuple(Var(str(position)) for position in range(len(nodes[0].expr.spatial)))
    inside = (index for node in nodes for tensor, index in _reads(node) if tensor in made)
    sources = [{index for tensor, index in _reads(node) if tensor == name} for node in (nodes[0], nodes[-1])]
    return sources[1] <= sources[0] and all(index == own for index in inside)


def _reads(node: Node) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    """Tensors and indices that a node reads, over the positions of its result."""
    values: dict[str, Expr] = {name: Var(str(position)) for position, name in enumerate(node.expr.spatial)}
    for access in accesses(node.expr):
        yield access.tensor, tuple(substitute(index, values) for index in access.index)
