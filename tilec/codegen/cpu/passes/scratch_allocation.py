"""Places in the thread's scratch: memories that are never used at once share one, best fit by lifetime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilec.abi.alignment import ALIGNMENT
from tilec.codegen.cpu.kernel_ir import Array
from tilec.ir.types import TTYPES


@dataclass(slots=True)
class Life:
    """A memory that is not an operand, and from which to which tile it is used."""

    memory: Array
    first: int
    last: int


@dataclass(slots=True)
class _Slot:
    """A place for memories of one type: two types never share one, they would be taken as not aliased."""

    ttype: str
    bytes: int
    users: list[Life]

    def takes(self, life: Life) -> bool:
        apart = all(user.last < life.first or life.last < user.first for user in self.users)
        return apart and self.ttype == life.memory.ttype


def allocate_scratch(lives: Sequence[Life]) -> tuple[tuple[Array, ...], int]:
    """The memories with their offsets, and the bytes of scratch that they take together."""
    slots: list[_Slot] = []
    chosen: dict[str, int] = {}
    for life in sorted(lives, key=lambda each: -each.memory.elements):
        if life.memory.kind != "scratch":
            continue
        fitting = [number for number, slot in enumerate(slots) if slot.takes(life)]
        if not fitting:
            size = life.memory.elements * TTYPES[life.memory.ttype].bits // 8
            slots.append(_Slot(life.memory.ttype, -(-size // ALIGNMENT) * ALIGNMENT, []))
        # Largest first: the last slot that fits is the smallest.
        chosen[life.memory.name] = fitting[-1] if fitting else len(slots) - 1
        slots[chosen[life.memory.name]].users.append(life)
    starts = [sum(slot.bytes for slot in slots[:number]) for number in range(len(slots))]
    memories = (life.memory for life in lives)
    placed = tuple(replace(m, offset=starts[chosen[m.name]]) if m.name in chosen else m for m in memories)
    return placed, sum(slot.bytes for slot in slots)
