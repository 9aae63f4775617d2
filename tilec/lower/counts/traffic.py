"""Planned traffic: the exact bytes that a program moves between levels, without running it (W07).

What a statement moves is a product of lengths, one per dimension, summed over all positions of the loops around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tilec.ir.intervals import Candidates
from tilec.ir.program import Buffer, Program
from tilec.ir.traffic import Traffic
from tilec.ir.types import tensor_bytes
from tilec.lower.counts.contiguous_accesses import gathered_accesses
from tilec.lower.counts.transfers import Around, Span, Transfers, length, transfers

_NO_SYMBOLS: Mapping[str, int] = MappingProxyType({})


def traffic(program: Program, symbols: Mapping[str, int] = _NO_SYMBOLS) -> dict[str, Traffic]:
    """Bytes that every level reads from and writes to lower ones, all units together.

    Loads count at the level of their target, stores at that of their source, as much as both windows and the tensor
    have in common; what units of a higher level do together counts once.  Equal to what the tile machine counts.
    What data index is read run by run and counts at the level above the one where it lies, index tuples x run: the
    machine stays below where places repeat.  Raises KeyError for a symbol without a value.
    """
    moved = {level.name: Traffic(0, 0) for level in program.levels}
    for (level, _), each in traffic_by_tensor(program, symbols).items():
        moved[level] = Traffic(moved[level].read + each.read, moved[level].written + each.written)
    return moved


def traffic_by_tensor(program: Program, symbols: Mapping[str, int] = _NO_SYMBOLS) -> dict[tuple[str, str], Traffic]:
    """The same of every tensor that a level moves: (level, tensor) -> bytes. Raises KeyError as `traffic` does."""
    found = transfers(program, symbols)
    moved: dict[tuple[str, str], list[int]] = {}
    for transfer in found.moved:
        spans, around, held = transfer.spans, transfer.around, transfer.held
        size = _bytes(found, spans, held, held.ttype, around)
        moved.setdefault((held.level, held.tensor), [0, 0])[transfer.stored] += size
    for run in gathered_accesses(found):
        above = program.levels[found.rank[run.below.level] + 1].name
        spans = (*(span for span, _ in run.inner), *run.outer)
        size = _bytes(found, spans, run.held, run.below.ttype, run.around)
        moved.setdefault((above, run.below.tensor), [0, 0])[0] += size
    return {key: Traffic(read, written) for key, (read, written) in moved.items()}


def _bytes(found: Transfers, spans: Sequence[Span], held: Buffer, ttype: str, around: Sequence[Around]) -> int:
    """The bytes that all executions of a transfer move, as many elements each as its spans hold together."""
    loops, shared = found.own(held, around)
    factors = [*(found.positions.table(length(span)) for span in spans), *found.ragged(loops)]
    alone = [factor.over(shared, np.max) for factor in factors]
    elements = found.positions.sum(alone, [loop.variable for loop in loops])
    return int(Candidates().size(tensor_bytes(ttype, (elements,))))
