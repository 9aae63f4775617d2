"""Sizes of a model that runs at any size: its symbols, and every integer that a run needs as an expression over them.

The numbers are an array of int64: the symbols first, then extents of tensors, constraints, places in the arenas, tasks
and grains of launches. Compiled code computes them (B04, B05) in parts: part 0 from the sizes of inputs, part k
once call k - 1 of onnxruntime has returned and the sizes of its results are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

NUMBERS = "numbers"
"""Name of the array in the text of a number that refers to another: `numbers[7] + 64`."""


@dataclass(frozen=True)
class SymbolSpec:
    """A symbol, which dimension `dim` of input or of result of a call number `at` tells: its extent is `factor` times
    the symbol plus `constant`. Sizes from `low` to `high` (None: no limit) that are multiples of `divisor` are allowed;
    `origin` says by whom."""

    name: str
    space: Literal["input", "result"]
    at: int
    dim: int
    low: int = 0
    high: int | None = None
    divisor: int = 1
    origin: str = ""
    factor: int = 1
    constant: int = 0

    def size_of(self, extent: int) -> int | None:
        """The symbol that its dimension's extent tells, None where no integer does."""
        size, rest = divmod(extent - self.constant, self.factor)
        return None if rest else size

    @property
    def allowed(self) -> str:
        """The allowed sizes as people write them."""
        ends = f"at least {self.low}" if self.high is None else f"{self.low} to {self.high}"
        return ends if self.divisor == 1 else f"{ends}, a multiple of {self.divisor}"

    def holds(self, size: int) -> bool:
        """Whether a size is allowed."""
        return self.low <= size and (self.high is None or size <= self.high) and size % self.divisor == 0


@dataclass(frozen=True)
class ConstraintSpec:
    """A condition on sizes: its text, the position of its value (0 or 1) in the numbers, and who demands it."""

    holds: str
    number: int
    origin: str = ""


@dataclass(frozen=True)
class ShapeProgram:
    """The numbers of a model, and what they mean by their positions.

    `numbers` are the texts of the expressions, over symbols and earlier numbers; the first are the symbols themselves.
    `parts` says in which part each is known (empty: all in part 0). `extents` has the position of every extent that
    shapes of the manifest mention. `arenas` are the sizes of the arenas in bytes, `tasks` the tasks of the launches of
    each segment, `widths` the most threads that any launch of a segment can use, `scratch` the bytes of working memory
    that each thread needs for the launches of a segment that have tasks.
    """

    symbols: tuple[SymbolSpec, ...]
    numbers: tuple[str, ...]
    extents: Mapping[str, int]
    constraints: tuple[ConstraintSpec, ...] = ()
    arenas: tuple[int, ...] = ()
    tasks: tuple[tuple[int, ...], ...] = ()
    widths: tuple[int, ...] = ()
    scratch: tuple[int, ...] = ()
    parts: tuple[int, ...] = field(default=())

    def part(self, number: int) -> int:
        """The part that a number is known in."""
        return self.parts[number] if self.parts else 0

    def shape_part(self, shape: tuple[int | str, ...]) -> int:
        """The part that all extents of a shape are known in."""
        return max((self.part(self.extents[each]) for each in shape if isinstance(each, str)), default=0)

    def __post_init__(self) -> None:
        names = tuple(symbol.name for symbol in self.symbols)
        if self.numbers[: len(names)] != names or any(self.extents.get(name) != n for n, name in enumerate(names)):
            raise ValueError("the first numbers are not the symbols")
        if any(symbol.factor < 1 for symbol in self.symbols):
            raise ValueError("the extent that tells a symbol does not grow with it")
        if self.parts and len(self.parts) != len(self.numbers):
            raise ValueError(f"there are {len(self.numbers)} numbers and parts of {len(self.parts)}")
        of_launches = (*self.widths, *self.scratch, *(number for segment in self.tasks for number in segment))
        of_constraints = (constraint.number for constraint in self.constraints)
        for number in (*self.extents.values(), *of_constraints, *self.arenas, *of_launches):
            if not 0 <= number < len(self.numbers):
                raise ValueError(f"there are {len(self.numbers)} numbers, none has position {number}")
