"""The problem of one level below a core's: its capacity and links, and the parts that it is to hold (W46)."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from tilec.ir.expr import Const, Expr, TensorExpr, Var, accesses, operands, rename_tensors, variables
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.ir.reads import reads
from tilec.ir.types import element_bytes
from tilec.lower.padding import fill_of, unguarded
from tilec.lower.promote_halves import PROMOTED_TTYPE
from tilec.scheduler.analysis.abstract_literals import abstract_literals
from tilec.scheduler.analysis.access import is_data_dependent
from tilec.scheduler.analysis.promote_halves import wide_inside
from tilec.scheduler.building.plan_costs import operations_at_peak
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.core_storage import Objective
from tilec.scheduler.tiling.register_tiles import speed

Parts = Sequence[Sequence[Node]]

OuterExtents = Mapping[str, Mapping[str, int]]
"""Node -> spatial iterator -> its extent in the tile of the level below (absent: all of it)."""


@dataclass(frozen=True, slots=True)
class Form:
    """A part up to the names of its tensors: a number that equal parts share, and the names in order of first use."""

    number: int
    tensors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node: what it reads once constants stand around its operands in place of guards (tilec.lower.padding), how far
    its iterators run (what is likely, where it is symbolic), operations at each point, shapes of what it reads, for
    every access the iterators in each index, and the tensors that data index.

    `plain` are its accesses if none is guarded and every index is an iterator or a number: their windows are the box.
    """

    bare: TensorExpr
    extents: Mapping[str, int]
    work: float
    shapes: Mapping[str, tuple[Expr, ...]]
    indices: tuple[tuple[str, tuple[frozenset[str], ...]], ...]
    indexed: tuple[str, ...]
    plain: tuple[tuple[str, tuple[str | int, ...]], ...] | None


@dataclass(frozen=True)
class LevelProblem:
    """One level below a core's, and the parts whose tiles it holds.

    `level` indexes the target's levels; `around` says how far nodes run in the tile of the level below, `share` how
    much of the capacity may be used, `pool_share` the part of a pool that the level takes where higher levels need some
    too.
    """

    parts: Parts
    graph: Graph
    target: TargetModel
    level: int
    numbers: Candidates
    objective: Objective
    around: OuterExtents = field(default_factory=dict)
    share: float = 1.0
    pool_share: float = 0.5

    @property
    def most(self) -> float:
        """Bytes of one instance of the level."""
        capacity = self.target.levels[self.level].capacity
        return float("inf") if capacity is None else capacity

    @property
    def capacity(self) -> float:
        """Bytes that one instance of the level should hold at most: of its pool higher levels get their part."""
        pool, above = self.target.levels[self.level].pool, self.target.levels[self.level + 1 :]
        shared = pool is not None and any(level.pool is not None and level.pool.name == pool.name for level in above)
        return self.most * self.share * (self.pool_share if shared else 1)

    @property
    def units(self) -> int:
        """Instances of the level that work side by side."""
        return self.target.levels[self.level].units

    @property
    def link(self) -> float:
        """Bytes per second from the level below."""
        return self.target.links[self.level]

    @property
    def feed(self) -> float:
        """Bytes per second that reach the cores."""
        return self.target.links[self.target.core]

    @cached_property
    def home(self) -> dict[str, int]:
        """Tensor -> number of the part that computes it."""
        return {node.name: number for number, part in enumerate(self.parts) for node in part}

    @cached_property
    def readers(self) -> dict[str, tuple[int, ...]]:
        """Tensor -> the parts that read it, without the one that computes it."""
        readers: dict[str, dict[int, None]] = {}
        for number, part in enumerate(self.parts):
            for node in part:
                for tensor in operands(node.expr):
                    if self.home.get(tensor) != number:
                        readers.setdefault(tensor, {})[number] = None
        return {tensor: tuple(numbers) for tensor, numbers in readers.items()}

    @cached_property
    def needs(self) -> tuple[frozenset[int], ...]:
        """For every part the parts that it reads."""
        return tuple(
            frozenset(self.home[t] for node in part for t in operands(node.expr) if self.home.get(t, number) != number)
            for number, part in enumerate(self.parts)
        )

    @cached_property
    def wanted(self) -> frozenset[str]:
        """Tensors made here that others than these parts need."""
        readers = self.graph.consumers()
        needed = {port.tensor for port in self.graph.outputs if port.tensor in self.home}
        return frozenset(needed | {t for t in self.home if any(node.name not in self.home for node in readers[t])})

    def leaves(self, tensor: str, inside: Container[int]) -> bool:
        """Whether a tensor made here is needed beyond some parts."""
        return tensor in self.wanted or any(n not in inside for n in self.readers.get(tensor, ()))

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """Every part up to names."""
        known: dict[object, int] = {}
        return tuple(self._form(part, known) for part in self.parts)

    def _form(self, part: Sequence[Node], known: dict[object, int]) -> Form:
        names: dict[str, str] = {}
        for node in part:
            for tensor in (node.name, *operands(node.expr)):
                names.setdefault(tensor, f"t{len(names)}")
        content = (
            tuple(_renamed(node.expr, names) for node in part),
            tuple((self.shapes[t], self.graph.tensors[t].ttype) for t in names),
            tuple(tuple(self.around.get(node.name, {}).items()) for node in part),
        )
        return Form(known.setdefault(content, len(known)), tuple(names))

    @cached_property
    def facts(self) -> dict[str, NodeFacts]:
        """Node -> what is worked out once."""
        return {node.name: self._facts(node.expr) for part in self.parts for node in part}

    def _facts(self, expr: TensorExpr) -> NodeFacts:
        around = self.around.get(expr.tensor, {})
        points = prod(int(self.numbers.size(e)) for e in expr.extents)
        shapes = {tensor: self.graph.tensors[tensor].shape for tensor in operands(expr)}
        fills = {tensor: fill_of(expr, tensor, shape) for tensor, shape in shapes.items()}
        bare = unguarded(expr, {t: fill.value for t, fill in fills.items() if fill is not None}, shapes)
        return NodeFacts(
            bare=bare,
            extents={i: around[i] if i in around else int(self.numbers.size(e)) for i, e in expr.domain.items()},
            work=float(self.numbers.size(operations_at_peak(expr)))
            / max(1, points)
            / speed(expr, self.graph, self.target),
            shapes=shapes,
            indices=tuple(
                (r.tensor, tuple(frozenset[str]() if i is None else variables(i) for i in r.index)) for r in reads(bare)
            ),
            indexed=tuple(dict.fromkeys(a.tensor for a in accesses(expr) if is_data_dependent(a))),
            plain=_plain(bare),
        )

    @cached_property
    def wide(self) -> frozenset[str]:
        """Half precision tensors that are held as f32 where all parts stay together."""
        exprs = [node.expr for part in self.parts for node in part]
        return frozenset(wide_inside(exprs, self.wanted, self.graph.tensors, self.target.widened))

    def bytes_of(self, tensor: str) -> int:
        """Bytes of one element of a tensor."""
        return element_bytes(PROMOTED_TTYPE if tensor in self.wide else self.graph.tensors[tensor].ttype)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Extents of every tensor, of those made here as far as the tile of the level below reaches."""
        outside = {t for facts in self.facts.values() for t in facts.shapes}
        shapes = {t: tuple(int(self.numbers.size(e)) for e in self.graph.tensors[t].shape) for t in outside}
        for part in self.parts:
            for node in part:
                extents = self.facts[node.name].extents
                shapes[node.name] = tuple(extents[i] for i in node.expr.spatial)
        return shapes

    def whole(self, tensor: str) -> int:
        """Bytes of a tensor, as far as the tile of the level below reaches."""
        return prod(self.shapes[tensor]) * self.bytes_of(tensor)


def _plain(expr: TensorExpr) -> tuple[tuple[str, tuple[str | int, ...]], ...] | None:
    plain: list[tuple[str, tuple[str | int, ...]]] = []
    for read in reads(expr):
        places = [_place(index, expr) for index in read.index]
        if None in places or read.iterator_guards or read.index_guards:
            return None
        plain.append((read.tensor, tuple(place for place in places if place is not None)))
    return tuple(plain)


def _place(index: Expr | None, expr: TensorExpr) -> str | int | None:
    match index:
        case Var(name) if name in expr.iterators:
            return name
        case Const(int() as value):
            return value
        case _:
            return None


def _renamed(expr: TensorExpr, names: Mapping[str, str]) -> TensorExpr:
    return replace(expr, tensor=names[expr.tensor], body=abstract_literals(rename_tensors(expr.body, names)))
