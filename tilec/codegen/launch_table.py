"""Kernel launches as data, and which of them a launch has to wait for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tilec.codegen.shape_program import Number, Size

Space = Literal["input", "output", "arena", "constant"]


@dataclass(frozen=True)
class Argument:
    """The memory behind a kernel's pointer: `size` bytes from byte `offset` of a tensor or of an arena.

    `index` counts the model's inputs, outputs, constants or arenas. Where sizes vary `tensor` names the one that lies
    there, and `apart` those of the same arena that share no byte with it at any size.
    """

    space: Space
    index: int
    offset: Size
    size: Size
    writes: bool = False
    tensor: str = ""
    apart: frozenset[str] = frozenset()

    def conflicts(self, other: "Argument") -> bool:
        """Whether both may touch a common byte and one of them writes it."""
        one_block = (self.space, self.index) == (other.space, other.index)
        return (self.writes or other.writes) and one_block and self._overlaps(other)

    def _overlaps(self, other: "Argument") -> bool:
        """Whether two places of one block share a byte at some sizes."""
        begin, size, start, length = self.offset, self.size, other.offset, other.size
        if (
            isinstance(begin, Number)
            or isinstance(size, Number)
            or isinstance(start, Number)
            or isinstance(length, Number)
        ):
            return other.tensor not in self.apart
        return begin < start + length and start < begin + size


@dataclass(frozen=True)
class Launch:
    """One call of kernel `symbol` on all of its `tasks`; arguments in the order of its operands.

    `grain` is the fewest tasks worth handing to a thread at once, `scratch_bytes` the working memory of each thread,
    `segment` the number of calls of onnxruntime before it; `group` the group of the plan that it computes; `sizes` are
    `shared` names the launch of the plan that several groups share, if it is in one; `sizes` are
    the values of the symbols that the kernel takes. Launches of one group are its variants, one of which has tasks.
    """

    symbol: str
    arguments: tuple[Argument, ...]
    tasks: Size
    scratch_bytes: Size = 0
    grain: Size = 1
    segment: int = 0
    group: str = ""
    sizes: tuple[Size, ...] = ()
    shared: str = ""

    @property
    def width(self) -> int:
        """The most threads that can share it, 1 where that depends on sizes."""
        if isinstance(self.tasks, Number) or isinstance(self.grain, Number):
            return 1
        return max(1, self.tasks // self.grain)

    def depends_on(self, earlier: "Launch") -> bool:
        """Whether it must not start before `earlier` has finished (reads after writes, and the two reverses)."""
        if self.group and self.group == earlier.group:
            return False
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
    """How many pointers a run passes; their table holds inputs, outputs, constants, the arenas, then the numbers."""

    inputs: int
    outputs: int
    constants: int
    arenas: int = 1

    @property
    def numbers(self) -> int:
        """Position of the pointer to the numbers of a model with symbols."""
        return self.inputs + self.outputs + self.constants + self.arenas

    def entry(self, argument: Argument) -> int:
        """Position of the argument's base pointer in the table."""
        start = {
            "input": 0,
            "output": self.inputs,
            "constant": self.inputs + self.outputs,
            "arena": self.inputs + self.outputs + self.constants,
        }
        return start[argument.space] + argument.index
