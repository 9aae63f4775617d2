"""Planned traffic: the exact bytes that a program moves between levels, without running it (W07).

What a statement moves is a product of interval lengths, one per dimension, summed over all positions of the loops
around it.  Dimensions that depend on different loops are independent, so the sum factorises: an 8192 x 8192
convolution takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

import numpy as np

from tilec.ir.expr import Binary, Call, Const, Expr, Var, variables
from tilec.ir.intervals import Candidates, Ints
from tilec.ir.moved import Moved
from tilec.ir.program import Allocate, Buffer, ComputeTile, LoadTiles, Loop, Program, Statement, StoreTiles
from tilec.ir.scopes import scope_ranks
from tilec.ir.types import tensor_bytes

_NO_SYMBOLS: Mapping[str, int] = MappingProxyType({})
_ZERO = Const(0)


def traffic(program: Program, symbols: Mapping[str, int] = _NO_SYMBOLS) -> dict[str, Moved]:
    """Bytes that every level reads from and writes to lower ones, all units together.

    Loads count at the level of their target, stores at that of their source, as much as both windows and the tensor
    have in common; what units of a higher level do together counts once.  Equal to what the tile machine counts.
    Raises KeyError for a symbol without a value.
    """
    return _Count(program, symbols).total()


@dataclass(frozen=True, slots=True)
class _Around:
    """A loop around a statement: its variable, its extent, and the level whose units it is spread over, if any."""

    variable: str
    extent: Expr
    rank: int | None


class _Count:
    def __init__(self, program: Program, symbols: Mapping[str, int]) -> None:
        self.program, self.symbols = program, symbols
        self.rank = {level.name: position for position, level in enumerate(program.levels)}
        self.scopes = scope_ranks(program.levels)
        self.buffers: dict[str, Buffer] = {b.name: b for b in program.parameters}
        self.extents: dict[str, Sequence[Expr]] = {b.tensor: b.shape for b in program.parameters}
        self.ranges: dict[str, int] = {}

    def total(self) -> dict[str, Moved]:
        """The sums by level."""
        statements = list(self._walk(self.program.body, ()))
        for statement, _ in statements:
            if isinstance(statement, ComputeTile):
                self.extents.setdefault(statement.expr.tensor, statement.expr.shape)
        moved = {level.name: [0, 0] for level in self.program.levels}
        for statement, around in statements:
            if isinstance(statement, LoadTiles):
                target, source = self.buffers[statement.target], self.buffers[statement.source]
                ends = ((target.lo, source.lo), (target.hi, source.hi))
                moved[target.level][0] += self._bytes(target, ends, around)
            elif isinstance(statement, StoreTiles):
                target, source = self.buffers[statement.target], self.buffers[statement.source]
                ends = ((statement.lo or source.lo, target.lo), (statement.hi or source.hi, target.hi))
                moved[source.level][1] += self._bytes(source, ends, around)
        return {name: Moved(read, written) for name, (read, written) in moved.items()}

    def _walk(
        self, body: Iterable[Statement], around: tuple[_Around, ...]
    ) -> Iterator[tuple[Statement, tuple[_Around, ...]]]:
        for statement in body:
            if isinstance(statement, Loop):
                rank = self.scopes[statement.scope] if statement.kind == "spread" else None
                inner = _Around(statement.variable, statement.extent, rank)
                self.ranges[statement.variable] = int(self._value(statement.extent).max(initial=0))
                yield from self._walk(statement.body, (*around, inner))
                continue
            if isinstance(statement, Allocate):
                self.buffers[statement.buffer.name] = statement.buffer
            yield statement, around

    def _bytes(self, held: Buffer, ends: tuple[Sequence[Sequence[Expr]], ...], around: tuple[_Around, ...]) -> int:
        """The bytes of all transfers of a statement; `held` is the window that travels."""
        level = self.rank[held.level]
        shared = {loop.variable for loop in around if loop.rank is not None and loop.rank > level}
        loops = [loop for loop in around if loop.variable not in shared]
        factors = [
            _length(los, his, extent)
            for los, his, extent in zip(
                zip(*ends[0], strict=True), zip(*ends[1], strict=True), self.extents[held.tensor], strict=True
            )
        ]
        factors += [Binary("<", Var(v.variable), v.extent) for v in loops if variables(v.extent) & self.ranges.keys()]
        elements = self._sum(factors, [loop.variable for loop in loops], shared)
        size = tensor_bytes(held.ttype, (elements,))
        return int(Candidates().size(size))

    def _sum(self, factors: Sequence[Expr], loops: Sequence[str], shared: set[str]) -> int:
        """The sum over all loop positions of the product of the factors, group by group of connected loops."""
        names = [sorted(variables(factor) & self.ranges.keys()) for factor in factors]
        groups: list[set[str]] = [{loop} for loop in loops]
        for used in names:
            together = [group for group in groups if group & set(used)]
            groups = [group for group in groups if group not in together] + (
                [set().union(*together)] if together else []
            )
        total = 1
        for used, factor in zip(names, factors, strict=True):
            if not set(used) - shared:
                total *= int(self._value(factor).max(initial=0))
        for group in groups:
            values = [
                self._reduced(factor, sorted(group), shared)
                for used, factor in zip(names, factors, strict=True)
                if set(used) & group
            ]
            free = prod(self.ranges[loop] for loop in group) if not values else 1
            grid = np.ones([self.ranges[loop] for loop in sorted(group)] if values else [], np.int64)
            for value in values:
                grid = grid * value
            total *= free * int(grid.sum())
        return total

    def _reduced(self, factor: Expr, order: list[str], shared: set[str]) -> Ints:
        """A factor over the loops `order`; over shared units its largest value, for they act together."""
        extra = sorted(variables(factor) & shared)
        value = np.broadcast_to(self._value(factor, [*extra, *order]), [self.ranges[v] for v in [*extra, *order]])
        return value.max(axis=tuple(range(len(extra))), initial=0).astype(np.int64) if extra else value.astype(np.int64)

    def _value(self, expr: Expr, order: Sequence[str] | None = None) -> Ints:
        """An expression at all positions of the loops in `order`, by default of those that it mentions."""
        names = sorted(variables(expr) & self.ranges.keys()) if order is None else order
        axes = np.ix_(*(np.arange(self.ranges[name]) for name in names))
        return np.asarray(Candidates({**self.symbols, **dict(zip(names, axes, strict=True))}).size(expr))


def _length(los: Sequence[Expr], his: Sequence[Expr], extent: Expr) -> Expr:
    """Elements of a dimension that all windows and the tensor have in common."""
    lo, hi = _extremum("maximum", (*los, _ZERO)), _extremum("minimum", (*his, extent))
    return Call("maximum", (Binary("-", hi, lo), _ZERO))


def _extremum(fn: str, ends: Sequence[Expr]) -> Expr:
    first, *rest = dict.fromkeys(ends)
    for end in rest:
        first = Call(fn, (first, end))
    return first
