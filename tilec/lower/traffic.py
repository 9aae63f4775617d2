"""Planned traffic: the exact bytes that a program moves between levels, without running it (W07).

What a statement moves is a product of lengths, one per dimension, summed over all positions of the loops around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tilec.ir.intervals import Candidates
from tilec.ir.moved import Moved
from tilec.ir.program import Program
from tilec.ir.types import tensor_bytes
from tilec.lower.transfers import Transfer, Transfers, length, transfers

_NO_SYMBOLS: Mapping[str, int] = MappingProxyType({})


def traffic(program: Program, symbols: Mapping[str, int] = _NO_SYMBOLS) -> dict[str, Moved]:
    """Bytes that every level reads from and writes to lower ones, all units together.

    Loads count at the level of their target, stores at that of their source, as much as both windows and the tensor
    have in common; what units of a higher level do together counts once.  Equal to what the tile machine counts.
    Raises KeyError for a symbol without a value.
    """
    found = transfers(program, symbols)
    moved = {level.name: [0, 0] for level in program.levels}
    for transfer in found.moved:
        moved[transfer.held.level][transfer.stored] += _bytes(found, transfer)
    return {name: Moved(read, written) for name, (read, written) in moved.items()}


def _bytes(found: Transfers, transfer: Transfer) -> int:
    """The bytes that all executions of a load or store move."""
    loops, shared = found.own(transfer.held, transfer.around)
    factors = [*(found.positions.table(length(span)) for span in transfer.spans), *found.ragged(loops)]
    alone = [factor.over(shared, np.max) for factor in factors]
    elements = found.positions.sum(alone, [loop.variable for loop in loops])
    return int(Candidates().size(tensor_bytes(transfer.held.ttype, (elements,))))
