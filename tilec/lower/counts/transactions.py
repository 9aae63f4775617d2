"""Planned transactions: number of tTiles requested from a level (penalty for uncoalesced access; Welder, 4.1).

Traffic counts raw bytes instead. A run is a contiguous part of the stored tensor in one transfer: the innermost
dimensions that are always accessed whole, and the next one. A run of n bytes takes ceil(n / tTile) transactions, as if
it were aligned; an unaligned one may take one more.
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
"""First and last index of an empty window, neutral in the computation of a hull."""


def transactions(program: Program, symbols: Mapping[str, int] = _NO_SYMBOLS) -> dict[str, int]:
    """Transactions of every level, each of `PlanLevel.transaction` bytes: loads from it, stores to it, and reads in
    place by tiles of higher levels.

    Units of the highest level run in lockstep within the unit of the level below: their adjacent accesses form one run,
    their common accesses count once. Raises KeyError for a symbol without a value.
    """
    program_transfers = transfers(program, symbols)
    size = {level.name: level.transaction for level in program.levels}
    counts = dict.fromkeys(size, 0)
    count = _Count(program_transfers, _in_step(program))
    for run in contiguous_accesses(program_transfers):
        counts[run.below.level] += count.of(run, size[run.below.level])
    return counts


def _in_step(program: Program) -> int:
    """Position of the level whose units run in lockstep; beyond all levels if there is none."""
    top = len(program.levels) - 1
    return top if program.levels[top - 1].units > 1 else top + 1


@dataclass(frozen=True, slots=True)
class _Row:
    """Elements of one dimension: accessed by each unit (`alone`), and by the units `beside` each other in it
    (`together`)."""

    alone: Table
    together: Table
    beside: frozenset[str]

    def fills(self, width: int) -> bool:
        """Whether the whole stored width is always accessed, each element once."""
        taken = self.alone.over(self.beside, np.sum)
        return bool((taken.values == width).all() and (self.together.values == width).all())

    def runs(self, elements: int, ttype: str, size: int) -> Table:
        """Transactions of runs of `elements` times the row: one run of all units, or one of each where that is less."""

        def count(taken: Ints) -> Ints:
            return -(-Candidates({"n": taken * elements}).size(tensor_bytes(ttype, (Var("n"),))) // size)

        return joined(self.together.mapped(count), self.alone.mapped(count).over(self.beside, np.sum), np.minimum)


_ONE = Table((), np.asarray(1, np.int64))
_SCALAR = _Row(_ONE, _ONE, frozenset())
"""The row to start with after dimensions that are accessed whole."""


@dataclass(frozen=True, slots=True)
class _Count:
    """Transaction counter; units of the level at position `in_step` run in lockstep."""

    transfers: Transfers
    in_step: int

    def of(self, run: ContiguousAccess, size: int) -> int:
        """Transactions of `size` bytes in all executions."""
        loops, shared = self.transfers.repetitions(run.held, run.around)
        step = {loop.variable for loop in loops if loop.rank == self.in_step and not self.transfers.varies(loop)}
        spans = [*(span for span, _ in run.inner), *run.outer]
        once = {v for v in step if sum(v in variables(lo) | variables(hi) for lo, hi in spans) == 1}
        elements, row, place = 1, _SCALAR, 0
        for span, stored in run.inner:
            row, place = self._row(span, once, shared), place + 1
            width = int(self.transfers.positions.table(stored).values)
            if not row.fills(width):
                break
            elements, row = elements * width, _SCALAR
        rest = [
            *(self.transfers.positions.table(length(span)) for span in spans[place:]),
            *self.transfers.ragged(loops),
        ]
        factors = [row.runs(elements, run.below.ttype, size), *(table.over(shared, np.max) for table in rest)]
        apart = {loop for factor in factors for loop in factor.loops}
        ranges = (self.transfers.positions.table(length(span)) for span in run.ranges)
        factors += [table.over(shared | step - apart, np.max) for table in ranges]
        repeated = [loop.variable for loop in loops if loop.variable in apart or loop.variable not in step]
        return self.transfers.positions.sum(factors, repeated)

    def _row(self, span: Span, once: set[str], shared: set[str]) -> _Row:
        """The row of one dimension; windows of adjacent units are joined to their hull."""
        alone = self.transfers.positions.table(length(span)).over(shared, np.max)
        beside = frozenset(once & set(alone.loops))
        if not beside:
            return _Row(alone, alone, beside)
        lo, hi = (self._end(end, alone, nowhere) for end, nowhere in zip(span, _NOWHERE, strict=True))
        first, last = lo.over(beside, np.min, _NOWHERE[0]), hi.over(beside, np.max, _NOWHERE[1])
        return _Row(alone, joined(last, first, lambda b, a: np.maximum(b - a, 0)), beside)

    def _end(self, end: Expr, alone: Table, nowhere: int) -> Table:
        """One end of windows; `nowhere` where they are empty."""
        return joined(self.transfers.positions.table(end), alone, lambda at, taken: np.where(taken > 0, at, nowhere))
