"""Places in the thread's scratch: arrays that are never used at once share one, best fit by lifetime."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilec.abi.alignment import ALIGNMENT
from tilec.codegen.cpu.kernel_ir import Array, KernelIR
from tilec.ir.types import TTYPES


@dataclass(slots=True)
class _Slot:
    """A place for arrays of one type: two types never share one, they would be taken as not aliased."""

    ttype: str
    bytes: int
    users: list[Array]

    def takes(self, array: Array) -> bool:
        first, last = array.life
        apart = all(user.life[1] < first or last < user.life[0] for user in self.users)
        return apart and self.ttype == array.ttype


def allocate_scratch(kernel: KernelIR) -> KernelIR:
    """The kernel with byte offsets for its arrays in scratch, and the bytes of scratch that they take together."""
    slots: list[_Slot] = []
    chosen: dict[str, int] = {}
    scratch = [array for array in kernel.memories if array.kind == "scratch"]
    for array in sorted(scratch, key=lambda each: -each.number):
        fitting = [number for number, slot in enumerate(slots) if slot.takes(array)]
        if not fitting:
            size = array.number * TTYPES[array.ttype].bits // 8
            slots.append(_Slot(array.ttype, -(-size // ALIGNMENT) * ALIGNMENT, []))
        # Largest first: the last slot that fits is the smallest.
        chosen[array.name] = fitting[-1] if fitting else len(slots) - 1
        slots[chosen[array.name]].users.append(array)
    starts = [sum(slot.bytes for slot in slots[:number]) for number in range(len(slots))]
    placed = tuple(replace(a, offset=starts[chosen[a.name]]) if a.name in chosen else a for a in kernel.memories)
    return replace(kernel, memories=placed, scratch_bytes=sum(slot.bytes for slot in slots))
