"""Planned traffic: the exact bytes that a program moves between levels, without running it (MemTraffic; Welder, 3.1).

The elements that a statement moves are a product of lengths, one per dimension, summed over all positions of the loops
around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tilec.ir.intervals import Candidates
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Buffer, Program
from tilec.ir.traffic import Traffic
from tilec.ir.types import tensor_bytes
from tilec.lower.counts.contiguous_accesses import ContiguousAccess, reads_in_place
from tilec.lower.counts.transfers import Around, Span, Transfers, length, transfers

_NO_SYMBOLS: Mapping[str, int] = MappingProxyType({})


def traffic(program: Program, symbols: Mapping[str, int] = _NO_SYMBOLS) -> dict[str, Traffic]:
    """Bytes that every level reads from and writes to lower ones, summed over all units.

    Loads count at the level of their target, stores at that of their source, and both at explicit levels that they
    pass, with the intersection of both windows and the tensor, in the type of the lower level; a collective transfer of
    units of a higher level counts once. Operands that tiles read in place count at every level from the one above
    theirs to that of the tile, but for caches on the way (`in_place`). Equal to the count of the tile machine but for
    reads in place: guards and // may make windows narrower than is known here, and gathered ones count run by run,
    index tuples x run length, where the machine counts repeated indices once. Raises KeyError for a symbol without a
    value.
    """
    moved = {level.name: Traffic(0, 0) for level in program.levels}
    for (level, _), each in traffic_by_tensor(program, symbols).items():
        moved[level] = Traffic(moved[level].read + each.read, moved[level].written + each.written)
    return moved


def traffic_by_tensor(program: Program, symbols: Mapping[str, int] = _NO_SYMBOLS) -> dict[tuple[str, str], Traffic]:
    """Traffic of every tensor that a level moves: (level, tensor) -> bytes. Raises KeyError as `traffic` does."""
    program_transfers = transfers(program, symbols)
    moved: dict[tuple[str, str], list[int]] = {}
    for transfer in program_transfers.moved:
        spans, around, buffer = transfer.spans, transfer.around, transfer.held
        size = _bytes(program_transfers, spans, buffer, transfer.below.ttype, around)
        first, last = program_transfers.rank[transfer.below.level] + 1, program_transfers.rank[buffer.level]
        passed = [level.name for level in program.levels[first:last] if level.managed == "explicit"]
        for name in (*passed, buffer.level):
            moved.setdefault((name, buffer.tensor), [0, 0])[transfer.stored] += size
    for read in reads_in_place(program_transfers):
        size = bytes_of_access(program_transfers, read)
        for level in levels_passed(program, program_transfers, read):
            if _is_counted(level, read, program_transfers):
                moved.setdefault((level.name, read.below.tensor), [0, 0])[0] += size
    return {key: Traffic(read, written) for key, (read, written) in moved.items()}


def levels_passed(program: Program, every: Transfers, read: ContiguousAccess) -> tuple[PlanLevel, ...]:
    """The levels that a read in place comes through and to, lowest first."""
    return program.levels[every.rank[read.below.level] + 1 : every.rank[read.held.level] + 1]


def _is_counted(level: PlanLevel, read: ContiguousAccess, every: Transfers) -> bool:
    """Whether all bytes of a read in place come to a level: a cache on the way keeps some, of gathered ones those above
    the operand's level count as if it did not."""
    first = every.rank[level.name] == every.rank[read.below.level] + 1
    return level.managed == "explicit" or level.name == read.held.level or (read.gathered and first)


def passes_cache(level: PlanLevel, read: ContiguousAccess, every: Transfers) -> bool:
    """Whether a read in place passes a level that keeps some of its bytes."""
    return not _is_counted(level, read, every)


def bytes_of_access(program: Transfers, access: ContiguousAccess) -> int:
    """Bytes of all executions of an access."""
    return _bytes(program, access.spans, access.held, access.below.ttype, access.around)


def _bytes(
    program_transfers: Transfers, spans: Sequence[Span], buffer: Buffer, ttype: str, around: Sequence[Around]
) -> int:
    """Bytes of all executions of a transfer, each of as many elements as the product of its spans."""
    loops, shared = program_transfers.repetitions(buffer, around)
    factors = [*(program_transfers.positions.table(length(span)) for span in spans), *program_transfers.ragged(loops)]
    alone = [factor.over(shared, np.max) for factor in factors]
    elements = program_transfers.positions.sum(alone, [loop.variable for loop in loops])
    return int(Candidates().size(tensor_bytes(ttype, (elements,))))
