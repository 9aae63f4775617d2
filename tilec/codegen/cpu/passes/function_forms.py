"""What a function of a kernel is but for the names of arrays and loops, and for constant offsets.

Offsets in a function count from the least constant of every array, which the caller adds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilec.codegen.cpu.kernel_ir import (
    Array,
    CallFunction,
    For,
    If,
    KernelIR,
    Step,
    Tile,
    certain_accesses,
    loop_variables,
)
from tilec.codegen.cpu.rename_steps import Renaming, constant_apart
from tilec.ir.expr import accesses


@dataclass(frozen=True, slots=True)
class Form:
    """Steps as a function: equal `key`s are the same one; its `body`, with what it is called: arrays, each from one of
    its elements on."""

    key: object
    body: tuple[Step, ...]
    arrays: tuple[tuple[str, int], ...]


class Forms:
    """The forms of steps of a kernel."""

    def __init__(self, kernel: KernelIR) -> None:
        self._arrays = {array.name: array for array in kernel.memories}
        self._symbols = kernel.symbols
        self._nontemporal = kernel.nontemporal

    def of(self, steps: Sequence[Step], scope: Sequence[str]) -> Form:
        """The form of steps that use variables of a scope."""
        used = list(dict.fromkeys(name for name, _ in _offsets(steps)))
        least = self._least(steps)
        body = Renaming({name: (name, start) for name, start in least.items()}, {}).steps(steps)
        inside = [name for name in scope if name not in self._symbols]
        known = {name: f"#{n}" for n, name in enumerate((*inside, *loop_variables(body)))}
        names = {name: (f"#{n}", 0) for n, name in enumerate(used)}
        key = self._facts(used), len(inside), Renaming(names, known, nameless=True).steps(body)
        shown = (name for name in used if self._arrays[name].kind != "local")
        return Form(key, body, tuple((name, least.get(name, 0)) for name in shown))

    def _least(self, body: Sequence[Step]) -> dict[str, int]:
        """The least constant among the offsets into every array; arrays in one place of scratch count from the same
        element.  Those that are read behind a guard, or where data says, count from their first one, for that is what
        is read instead; those that are streamed have places in vectors."""
        least: dict[object, int] = {}
        stay = {self._place(name) for name in (*self._nontemporal, *_guarded(body))}
        for name, offset in _offsets(body):
            place = self._place(name)
            least[place] = min(offset, least.get(place, offset))
        used = (name for name, _ in _offsets(body) if self._arrays[name].kind != "local")
        return {name: max(0, least[place]) for name in used if (place := self._place(name)) not in stay}

    def _place(self, name: str) -> object:
        array = self._arrays[name]
        return name if array.offset is None else (array.kind, array.offset)

    def _facts(self, used: Sequence[str]) -> tuple[object, ...]:
        """What functions depend on beside their bodies: where arrays are, and which of them are one."""
        places = list(dict.fromkeys(map(self._place, used)))
        return tuple(_facts(self._arrays[n], n in self._nontemporal, places.index(self._place(n))) for n in used)


def _facts(array: Array, streamed: bool, place: int) -> object:
    return array.kind, array.ttype, array.pieces, streamed, place


def _offsets(steps: Sequence[Step]) -> Iterator[tuple[str, int]]:
    """Every use of an array, with the constant part of its offset."""
    for step in steps:
        match step:
            case For(_, _, _, body):
                yield from _offsets(body)
            case If(_, yes, no):
                yield from _offsets((*yes, *no))
            case CallFunction(_, _, arrays):
                yield from arrays
            case Tile():
                for access in (step.target, *accesses(step.value)):
                    yield access.tensor, constant_apart(access.index[0])[1]
                for ahead in step.ahead:
                    yield ahead.memory, constant_apart(ahead.first)[1]


def _guarded(steps: Sequence[Step]) -> Iterator[str]:
    """Arrays that are not read at every point of a tile, or at offsets that data says."""
    for step in steps:
        match step:
            case For(_, _, _, body):
                yield from _guarded(body)
            case If(_, yes, no):
                yield from _guarded((*yes, *no))
            case Tile():
                certain = Counter(access.tensor for access in certain_accesses(step.value))
                yield from (Counter(access.tensor for access in accesses(step.value)) - certain)
