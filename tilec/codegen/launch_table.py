"""Kernel launches as data, and which of them a launch has to wait for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Space = Literal["input", "output", "arena", "constant"]


@dataclass(frozen=True)
class Argument:
    """The memory behind a kernel's pointer: `size` bytes from byte `offset` of a tensor or of the arena.

    `index` counts the model's inputs, outputs or constants; it is 0 for the arena.
    """

    space: Space
    index: int
    offset: int
    size: int
    writes: bool = False

    def conflicts(self, other: "Argument") -> bool:
        """Whether both touch a common byte and one of them writes it."""
        return (
            (self.writes or other.writes)
            and (self.space, self.index) == (other.space, other.index)
            and self.offset < other.offset + other.size
            and other.offset < self.offset + self.size
        )


@dataclass(frozen=True)
class Launch:
    """One call of kernel `symbol` on all of its `tasks`; arguments in the order of its operands.

    `grain` is the fewest tasks worth handing to a thread at once; `scratch_bytes` the working memory of each thread;
    `segment` the number of calls of onnxruntime before it; `group` the group of the plan that it computes.
    """

    symbol: str
    arguments: tuple[Argument, ...]
    tasks: int
    scratch_bytes: int = 0
    grain: int = 1
    segment: int = 0
    group: str = ""

    @property
    def width(self) -> int:
        """The most threads that can share it."""
        return max(1, self.tasks // self.grain)

    def depends_on(self, earlier: "Launch") -> bool:
        """Whether it must not start before `earlier` has finished (reads after writes, and the two reverses)."""
        return any(a.conflicts(b) for a in self.arguments for b in earlier.arguments)


def waits(launches: Sequence[Launch]) -> list[tuple[int, ...]]:
    """For each launch the earlier ones to wait for before it starts, and at last those to wait for at the end.

    A thread passes all waits in order, and tasks of a launch only run after its waits: what was waited for
    before, directly or through another launch, is left out.
    """
    finished: list[set[int]] = []
    passed: set[int] = set()
    result: list[tuple[int, ...]] = []
    for number in range(len(launches) + 1):
        needed = []
        for earlier in range(number - 1, -1, -1):
            if earlier in passed:
                continue
            if number == len(launches) or launches[number].depends_on(launches[earlier]):
                needed.append(earlier)
                passed |= finished[earlier]
        result.append(tuple(needed))
        finished.append(passed | {number})
    return result


@dataclass(frozen=True)
class PointerTable:
    """How many pointers a run passes; their table holds inputs, outputs, constants, then the arena."""

    inputs: int
    outputs: int
    constants: int

    def entry(self, argument: Argument) -> int:
        """Position of the argument's base pointer in the table."""
        start = {
            "input": 0,
            "output": self.inputs,
            "constant": self.inputs + self.outputs,
            "arena": self.inputs + self.outputs + self.constants,
        }
        return start[argument.space] + argument.index
