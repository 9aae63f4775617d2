"""Places in the thread's scratch: arrays that are never used at once share one, best fit by lifetime.

Arrays of open size lie behind all others: those of numbers never move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilec.abi.alignment import ALIGNMENT
from tilec.codegen.cpu.extents import Extent, equal_extents, rounded_up, total_of
from tilec.codegen.cpu.kernel_ir import Array, KernelIR


@dataclass(slots=True)
class _Slot:
    """A place for arrays of one type: two types never share one, they would be taken as not aliased."""

    ttype: str
    bytes: Extent
    users: list[Array]

    def takes(self, array: Array) -> bool:
        apart = all(user.life[1] < array.life[0] or array.life[1] < user.life[0] for user in self.users)
        return apart and self.ttype == array.ttype


def allocate_scratch(kernel: KernelIR) -> KernelIR:
    """The kernel with byte offsets for its arrays in scratch, and the bytes of scratch that they take together."""
    scratch = [array for array in kernel.memories if array.kind == "scratch"]
    slots = _known_slots([array for array in scratch if isinstance(array.elements, int)])
    slots += _open_slots([array for array in scratch if not isinstance(array.elements, int)])
    starts: dict[str, Extent] = {}
    end: Extent = 0
    for slot in slots:
        starts |= {array.name: end for array in slot.users}
        end = total_of((end, slot.bytes))
    placed = tuple(replace(a, offset=starts[a.name]) if a.name in starts else a for a in kernel.memories)
    return replace(kernel, memories=placed, scratch_bytes=end)


def _known_slots(arrays: Sequence[Array]) -> list[_Slot]:
    """Slots of numbers, for the largest arrays first: the last that fits is the smallest."""
    slots: list[_Slot] = []
    for array in sorted(arrays, key=_descending):
        fitting = [slot for slot in slots if slot.takes(array)]
        if fitting:
            fitting[-1].users.append(array)
        else:
            slots.append(_Slot(array.ttype, rounded_up(array.bytes, ALIGNMENT), [array]))
    return slots


def _descending(array: Array) -> int:
    assert isinstance(array.elements, int), array.name
    return -array.elements


def _open_slots(arrays: Sequence[Array]) -> list[_Slot]:
    """Slots of open sizes, each for arrays of one size."""
    slots: list[_Slot] = []
    for array in arrays:
        size = rounded_up(array.bytes, ALIGNMENT)
        fitting = [slot for slot in slots if slot.takes(array) and equal_extents(slot.bytes, size)]
        if fitting:
            fitting[0].users.append(array)
        else:
            slots.append(_Slot(array.ttype, size, [array]))
    return slots
