"""Planned transactions: how often a level is asked for its tTile, where traffic counts raw bytes (W22).

A run is what a transfer takes of the stored tensor without a gap: the innermost dimensions that it always takes whole,
and the next one.  A run of n bytes takes ceil(n / tTile) transactions, as if it began where one begins; an unaligned
one may take one more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tilec.ir.expr import Expr, Var, variables
from tilec.ir.intervals import Candidates, Ints
from tilec.ir.program import Program
from tilec.ir.types import tensor_bytes
from tilec.lower.counts.contiguous_accesses import ContiguousAccess, contiguous_accesses
from tilec.lower.counts.loop_positions import Table, joined
from tilec.lower.counts.transfers import Span, Transfers, length, transfers

_NO_SYMBOLS: Mapping[str, int] = MappingProxyType({})
_NOWHERE = (1 << 62, 0)
"""First and last index of an empty window, as far as a hull is concerned."""


def transactions(program: Program, symbols: Mapping[str, int] = _NO_SYMBOLS) -> dict[str, int]:
    """Transactions of every level, each `PlanLevel.transaction` bytes: those of loads from it, of stores to it, and of
    tiles of higher levels that read it in place.

    Units of the highest level work in step within the unit of the level below: what they take side by side is one
    run, what they take in common is taken once.  Raises KeyError for a symbol without a value.
    """
    found = transfers(program, symbols)
    size = {level.name: level.transaction for level in program.levels}
    counts = dict.fromkeys(size, 0)
    count = _Count(found, _in_step(program))
    for run in contiguous_accesses(found):
        counts[run.below.level] += count.of(run, size[run.below.level])
    return counts


def _in_step(program: Program) -> int:
    """The position of the level whose units work in step, beyond all levels where there is none."""
    top = len(program.levels) - 1
    return top if program.levels[top - 1].units > 1 else top + 1


@dataclass(frozen=True, slots=True)
class _Row:
    """Elements of one dimension: what each unit takes, and what the units `beside` each other in it take together."""

    alone: Table
    together: Table
    beside: frozenset[str]

    def fills(self, width: int) -> bool:
        """Whether the stored width is always taken, each element once."""
        taken = self.alone.over(self.beside, np.sum)
        return bool((taken.values == width).all() and (self.together.values == width).all())

    def runs(self, elements: int, ttype: str, size: int) -> Table:
        """Transactions of runs of as many times `elements`: one run of all units, or one of each where that is less."""

        def count(taken: Ints) -> Ints:
            return -(-Candidates({"n": taken * elements}).size(tensor_bytes(ttype, (Var("n"),))) // size)

        return joined(self.together.mapped(count), self.alone.mapped(count).over(self.beside, np.sum), np.minimum)


_ONE = Table((), np.asarray(1, np.int64))
_SCALAR = _Row(_ONE, _ONE, frozenset())
"""A run that dimensions taken whole leave nothing to add to."""


@dataclass(frozen=True, slots=True)
class _Count:
    """Counts transactions; units of the level at position `in_step` work in step."""

    found: Transfers
    in_step: int

    def of(self, run: ContiguousAccess, size: int) -> int:
        """Transactions of `size` bytes of all executions."""
        loops, shared = self.found.own(run.held, run.around)
        step = {loop.variable for loop in loops if loop.rank == self.in_step and not self.found.varies(loop)}
        spans = [*(span for span, _ in run.inner), *run.outer]
        once = {v for v in step if sum(v in variables(lo) | variables(hi) for lo, hi in spans) == 1}
        elements, row, place = 1, _SCALAR, 0
        for span, stored in run.inner:
            row, place = self._row(span, once, shared), place + 1
            width = int(self.found.positions.table(stored).values)
            if not row.fills(width):
                break
            elements, row = elements * width, _SCALAR
        rest = [*(self.found.positions.table(length(span)) for span in spans[place:]), *self.found.ragged(loops)]
        factors = [row.runs(elements, run.below.ttype, size), *(table.over(shared, np.max) for table in rest)]
        apart = {loop for factor in factors for loop in factor.loops}
        repeated = [loop.variable for loop in loops if loop.variable in apart or loop.variable not in step]
        return self.found.positions.sum(factors, repeated)

    def _row(self, span: Span, once: set[str], shared: set[str]) -> _Row:
        """One dimension; windows of units beside each other are joined to their hull."""
        alone = self.found.positions.table(length(span)).over(shared, np.max)
        beside = frozenset(once & set(alone.loops))
        if not beside:
            return _Row(alone, alone, beside)
        lo, hi = (self._end(end, alone, nowhere) for end, nowhere in zip(span, _NOWHERE, strict=True))
        first, last = lo.over(beside, np.min, _NOWHERE[0]), hi.over(beside, np.max, _NOWHERE[1])
        return _Row(alone, joined(last, first, lambda b, a: np.maximum(b - a, 0)), beside)

    def _end(self, end: Expr, alone: Table, nowhere: int) -> Table:
        """An end of windows; `nowhere` of those that are empty."""
        return joined(self.found.positions.table(end), alone, lambda at, taken: np.where(taken > 0, at, nowhere))
