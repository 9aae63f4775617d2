"""Intervals of consecutive nodes that are computed together, and their traffic besides that of their contractions.

An interval has one contraction, a chain of them, or none. Tensors between its nodes cost nothing; tensors that enter
and leave move once. A tensor that is read again behind a later contraction goes through the backing store.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tilec.bounds.chain.chain import ProductChain
from tilec.bounds.einsum.einsum import Einsum
from tilec.bounds.einsum.lower import needed
from tilec.bounds.graph.contractions import bits_of, bytes_of, contraction_of
from tilec.bounds.graph.links import Paths, Reader, chain_of, next_reader
from tilec.ir.algebra import bounds_of
from tilec.ir.bind import iterator_ranges
from tilec.ir.expr import Expr, accesses, constant_value
from tilec.ir.graph import Graph, Node
from tilec.ir.known_ranges import Ranges

MAX_NODES = 96
"""Maximal number of nodes of an interval."""

MAX_CONTRACTIONS = 8
"""Maximal number of contractions of an interval."""


@dataclass(frozen=True)
class NodeInterval:
    """The nodes from position `first` to before `end`, with contractions `readers`.

    `side` is the traffic in bytes besides that of the curve of the `chain`, or of the only contraction; negative where
    nodes around them replace traffic of their operands. An interval without contractions needs `least` bytes of buffer,
    and so does a `resident` one, whose contractions have no curves. `rows`: nodes behind the last contraction need
    whole rows of the chain.
    """

    first: int
    end: int
    side: int
    least: int = 0
    readers: tuple[Reader, ...] = ()
    chain: ProductChain | None = None
    rows: bool = False
    resident: bool = False


class Surroundings:
    """Data that intervals of a graph share: sizes, contractions, and readers of tensors; nodes in the `order` of
    intervals."""

    def __init__(self, graph: Graph, order: Sequence[Node]) -> None:
        self.order = order
        self.tensors = graph.tensors
        self.bytes = {name: bytes_of(tensor) for name, tensor in graph.tensors.items()}
        pairs = ((node.name, contraction_of(node, graph.tensors)) for node in order)
        self.einsums: dict[str, Einsum] = {name: einsum for name, einsum in pairs if einsum is not None}
        self.readers = {name: len(nodes) for name, nodes in graph.consumers().items()}
        self.results = {port.tensor for port in graph.outputs}
        self.results |= {port.tensor for call in graph.calls for port in call.inputs}

        self.paths = Paths()
        self._reads: dict[str, Mapping[str, int]] = {}

    def reads(self, node: Node) -> Mapping[str, int]:
        """Upper limit in bytes of every operand that a node reads: its number of reads, or the box around all."""
        if node.name not in self._reads:
            indices: dict[str, set[tuple[Expr, ...]]] = {}
            for access in accesses(node.expr):
                indices.setdefault(access.tensor, set()).add(access.index)
            points, ranges = _points(node.expr.extents), iterator_ranges(node.expr)
            self._reads[node.name] = {name: self._bytes_at(name, at, points, ranges) for name, at in indices.items()}
        return self._reads[node.name]

    def _bytes_at(self, tensor: str, indices: Collection[tuple[Expr, ...]], points: int, ranges: Ranges) -> int:
        shape = [constant_value(extent) or 0 for extent in self.tensors[tensor].shape]
        elements = min(len(indices) * points, _box(indices, shape, ranges))
        return -(-elements * bits_of(self.tensors[tensor]) // 8)


def _box(indices: Iterable[Sequence[Expr]], shape: Sequence[int], ranges: Ranges) -> int:
    """Number of elements in the box around all indices; the whole side where an index depends on data or has no
    limit."""
    sides = []
    for size, along in zip(shape, zip(*indices, strict=True), strict=True):
        ends = [bounds_of(index, ranges) if not accesses(index) else (None, None) for index in along]
        low, high = min(0 if first is None else first for first, _ in ends), [last for _, last in ends]
        top = size - 1 if None in high else max(last for last in high if last is not None)
        sides.append(max(0, min(size - 1, top) - max(0, low) + 1))
    return prod(sides)


def _points(extents: Sequence[Expr]) -> int:
    return prod(constant_value(extent) or 0 for extent in extents)


def intervals_from(first: int, around: Surroundings) -> Iterator[NodeInterval]:
    """All intervals that begin at a position, by rising length."""
    growing = _Growing(around)
    for end in range(first + 1, min(len(around.order), first + MAX_NODES) + 1):
        if not growing.add(around.order[end - 1]):
            return
        yield growing.interval(first, end)


@dataclass
class _Growing:
    """An interval under construction, node by node."""

    around: Surroundings
    inputs: dict[str, int] = field(default_factory=dict)
    computed_at: dict[str, int] = field(default_factory=dict)
    unread: dict[str, int] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    spilled: set[str] = field(default_factory=set)
    behind: set[str] = field(default_factory=set)
    readers: list[Reader] = field(default_factory=list)
    betweens: list[dict[str, Node]] = field(default_factory=list)
    rows: int | None = None
    slab: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    absorbed: int = 0
    chain: ProductChain | None = None

    @property
    def count(self) -> int:
        """Number of contractions so far."""
        return len(self.readers)

    def add(self, node: Node) -> bool:
        """Add a node; False where no interval contains it together with those before."""
        einsum = self.around.einsums.get(node.name)
        if not (self._plain(node) if einsum is None else self._contraction(node, einsum)):
            return False
        used = self.around.reads(node).keys()
        if einsum is not None or self.behind.intersection(used):
            self.behind.add(node.name)
        for name in used:
            if name in self.computed_at:
                self.unread[name] -= 1
                self._write(name)
        self.computed_at[node.name] = self.count
        self.unread[node.name] = self.around.readers[node.name]
        self._write(node.name)
        return True

    def _plain(self, node: Node) -> bool:
        """Add a node that is no contraction."""
        if node.expr.reduce and not self._reduces(node):
            return False
        for name in self.around.reads(node):
            if name not in self.computed_at:
                read = min(self.around.bytes[name], self.inputs.get(name, 0) + self.around.reads(node)[name])
                self.bytes_in += read - self.inputs.get(name, 0)
                self.inputs[name] = read
            elif self.computed_at[name] != self.count and name not in self.spilled:
                self.spilled.add(name)
                self.bytes_in += self.around.bytes[name]
        if self.count:
            self.betweens[-1][node.name] = node
            if node.expr.reduce:
                self.chain = chain_of(self.readers, self.betweens, self.around.paths)
                return self.chain is not None
        return True

    def _reduces(self, node: Node) -> bool:
        """Add a reduction: behind a contraction it needs rows, elsewhere buffer for its simultaneous operands."""
        if self.count:
            return True
        rows = _points(node.expr.shape)
        if self.rows not in (None, rows):
            return False
        self.rows = rows
        at_once = _points(node.expr.extents) // max(rows, 1)
        size = sum(min(self.around.bytes[name], -(-at_once * bits_of(self.around.tensors[name]) // 8))
                   for name in self.around.reads(node))  # fmt: skip
        self.slab = max(self.slab, size)
        return True

    def _contraction(self, node: Node, einsum: Einsum) -> bool:
        """Add the only contraction of an interval, or the next of its chain."""
        tensors = {operand.tensor for operand in einsum.inputs}
        reader: Reader | None = Reader(node, einsum)
        if self.count:
            if self.count == MAX_CONTRACTIONS:
                return False
            paths = self.around.paths
            reader = next_reader(self.readers[-1], node, einsum, self.betweens[-1], paths)
            self.chain = chain_of([*self.readers, reader], [*self.betweens, {}], paths) if reader is not None else None
            if reader is None or self.chain is None:
                return False
            tensors.remove(einsum.inputs[reader.operand].tensor)
        computed = tensors & self.computed_at.keys()
        late = any(name in self.behind or self.computed_at[name] != self.count for name in computed)
        if reader is None or late or (not self.count and (self.rows is not None or not self._spares(computed))):
            return False
        read = needed(einsum)
        self.absorbed += sum(read[name] // 8 for name in computed)
        self.readers.append(reader)
        self.betweens.append({})
        return True

    def _spares(self, computed: set[str]) -> bool:
        """Whether producers of operands read no more bytes than the operands they write, small ones aside.

        The mapping may fetch operands several times; their sources must not have more traffic then.
        """
        size = sum(self.around.bytes[name] for name in computed)
        return sum(read for read in self.inputs.values() if 8 * read > size) <= size

    def _write(self, name: str) -> None:
        """Record whether a tensor is written: for nodes outside, or to be read again."""
        needed = self.unread[name] > 0 or name in self.around.results or name in self.spilled
        if needed != (name in self.written):
            self.bytes_out += self.around.bytes[name] if needed else -self.around.bytes[name]
            (self.written.add if needed else self.written.remove)(name)

    def interval(self, first: int, end: int) -> NodeInterval:
        """The interval so far."""
        side = self.bytes_in + self.bytes_out
        if not self.count:
            return NodeInterval(first, end, side, self.slab if end - first > 1 else 0)
        side -= self.absorbed + self.around.bytes[self.readers[-1].node.name]
        rows = any(node.expr.reduce for node in self.betweens[-1].values())
        return NodeInterval(first, end, side, readers=tuple(self.readers), chain=self.chain, rows=rows)
