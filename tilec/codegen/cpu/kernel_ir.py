"""A kernel between tile program and TIR: where every buffer lives, static loops, tiles over flat memory.

The passes of `pipeline` make it, `emit` turns it into TIR, `kernel_text` prints it for people and `verify_kernel`
states its rules. An access is `Access(memory, (offset,))` with one offset in elements; its variables are loop variables
and the tile's own dimensions, which count from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tilec.codegen.cpu.extents import Extent, product, total_of
from tilec.codegen.cpu.strip_mining import Strip
from tilec.ir.expr import Access, Binary, Call, Const, Expr, accesses, as_expr, children, constant_value
from tilec.ir.places import element_at
from tilec.ir.program import Combine, Place
from tilec.ir.types import TTYPES


@dataclass(frozen=True, slots=True)
class Array:
    """A flat array of `elements`, a number if it is local. An operand is a parameter of the kernel, `scratch` lies at
    byte `offset` of the thread's block (None before it has a place), behind arrays of open size at an expression;
    `local` consists of `pieces` (offset, lanes) that are registers.

    `life` is the first and the last tile of the kernel, as they were counted when it was made, between which an array
    that is no operand is in use.
    """

    name: str
    ttype: str
    elements: Extent
    kind: Literal["operand", "scratch", "local"]
    offset: Extent | None = None
    pieces: tuple[tuple[int, int], ...] = ()
    life: tuple[int, int] = (0, 0)

    @property
    def bytes(self) -> Extent:
        """The size in bytes."""
        bits = TTYPES[self.ttype].bits
        return self.elements * bits // 8 if isinstance(self.elements, int) else product((self.elements, bits // 8))


@dataclass(frozen=True, slots=True)
class Storage:
    """Where the elements of a window live: the element at `origin` of the tensor has offset 0 of `memory`.

    With a `place` the memory is that of a tensor which the window is a part of, and its accesses name memories.
    """

    memory: str
    ttype: str
    origin: tuple[Expr, ...]
    strides: tuple[Extent, ...]
    place: Place | None = None

    def offset(self, index: tuple[Expr, ...]) -> Expr:
        """Flat offset of an element given in tensor coordinates, not simplified."""
        if self.place is not None:
            index = element_at(self.place, index)
        total: Expr = Const(0)
        for i, first, stride in zip(index, self.origin, self.strides, strict=True):
            total = Binary("+", total, Binary("*", Binary("-", i, first), as_expr(stride)))
        return total


@dataclass(frozen=True, slots=True)
class Dim:
    """A dimension of a tile, from 0 to `extent`."""

    name: str
    extent: Expr

    @property
    def size(self) -> int | None:
        """The extent when it is a number."""
        return constant_value(self.extent)


@dataclass(frozen=True, slots=True)
class Prefetch:
    """What is read or `written` next: `count` runs of a memory, each of `run` elements, the first one at offset
    `first`, one every `pitch` elements.

    Meanwhile go `loops` around a tile, outermost first: variable, first value, how often it goes round.
    """

    memory: str
    first: Expr
    run: int
    pitch: int
    count: int
    loops: tuple[tuple[str, int, int], ...]
    written: bool = False


@dataclass(frozen=True, slots=True)
class Blocking:
    """How a tile is cut. `vector` names the vector dimension (None: scalar), `horizontal` says that it is a reduce
    dimension.

    `runs` cut every dimension; spatial ones are nested in the order of `spatial`, reduce ones in that of `reduce`.
    `chains` is how many accumulators a point has. A copy that transposes reads vectors along dimension `across`:
    where a body covers `lanes` positions of both, it is a square block. `group` points of a reduction that is
    unrolled altogether are computed side by side.
    """

    vector: str | None
    horizontal: bool
    lanes: int
    spatial: tuple[str, ...]
    reduce: tuple[str, ...]
    runs: Mapping[str, tuple[Strip, ...]]
    chains: int = 1
    across: str | None = None
    group: int | None = None


@dataclass(frozen=True, slots=True)
class Tile:
    """`target[...] = value` over all dimensions, reduced over `reduce` by `reducer`.

    `combine` merges the result with what the target holds. `ttype` is the type that literals take. Meanwhile what
    lies `ahead` is brought near. A tile of the plan's `node` follows what the plan says of it; copies and fills are
    nobody's. Products of words are those of a compute `unit`, or by shifts where it names none. `blocking` is how it is
    cut.
    """

    spatial: tuple[Dim, ...]
    reduce: tuple[Dim, ...]
    reducer: str | None
    value: Expr
    target: Access
    ttype: str
    combine: Combine = "none"
    ahead: tuple[Prefetch, ...] = ()
    node: str = ""
    unit: str = ""
    blocking: Blocking | None = None

    @property
    def dims(self) -> tuple[Dim, ...]:
        """Spatial, then reduce dimensions."""
        return self.spatial + self.reduce


@dataclass(frozen=True, slots=True)
class For:
    """`for variable in [lo, hi)`."""

    variable: str
    lo: Expr
    hi: Expr
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class If:
    """One of two bodies."""

    condition: Expr
    yes: tuple[Step, ...]
    no: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class CallFunction:
    """A part of the kernel run with the values of `variables` and with arrays, each from one of its elements on."""

    part: str
    variables: tuple[str, ...]
    arrays: tuple[tuple[str, int], ...] = ()


Step = Tile | For | If | CallFunction


@dataclass(frozen=True, slots=True)
class Function:
    """Steps that are a function of their own; `variables` are those of the loops around it that it needs, `arrays`
    those of the kernel that stand for what it is called with."""

    name: str
    variables: tuple[str, ...]
    body: tuple[Step, ...]
    arrays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParallelNest:
    """`spread` gives the variables of task loops, outermost first, with their extents; `body` is one task. Of the
    outermost loop, `stripe` tasks come before the next one along the others."""

    spread: tuple[tuple[str, Extent], ...]
    body: tuple[Step, ...]
    stripe: int = 1

    @property
    def tasks(self) -> Extent:
        """How many tasks there are; extents that are no numbers are never negative."""
        total = product(extent for _, extent in self.spread)
        return max(0, total) if isinstance(total, int) else total


@dataclass(frozen=True, slots=True)
class KernelIR:
    """A kernel: its tasks are those of all nests, one nest after the other; they run `parts`.

    `memories` are its arrays; whole vectors go past the caches to those that are `nontemporal`. `scratch_bytes` is the
    working memory of a thread. `symbols` are sizes that it takes as arguments.
    """

    name: str
    memories: tuple[Array, ...]
    nests: tuple[ParallelNest, ...]
    scratch_bytes: Extent
    parts: tuple[Function, ...] = ()
    nontemporal: frozenset[str] = frozenset()
    symbols: tuple[str, ...] = ()

    @property
    def tasks(self) -> Extent:
        """How many tasks the kernel has."""
        return total_of(nest.tasks for nest in self.nests)


def tiles(steps: tuple[Step, ...]) -> Iterator[Tile]:
    """All tiles, in order, those of parts that are run left out."""
    for step in steps:
        match step:
            case For(_, _, _, body):
                yield from tiles(body)
            case If(_, yes, no):
                yield from tiles(yes)
                yield from tiles(no)
            case Tile():
                yield step


def loop_variables(steps: Sequence[Step]) -> Iterator[str]:
    """The variables of loops, in order."""
    for step in steps:
        match step:
            case For(variable, _, _, body):
                yield variable
                yield from loop_variables(body)
            case If(_, yes, no):
                yield from loop_variables((*yes, *no))


def calls(steps: Sequence[Step]) -> Iterator[CallFunction]:
    """All calls of parts, in order."""
    for step in steps:
        match step:
            case For(_, _, _, body):
                yield from calls(body)
            case If(_, yes, no):
                yield from calls((*yes, *no))
            case CallFunction():
                yield step


def memories_of(steps: Sequence[Step]) -> Iterator[str]:
    """The memory of every access, in order, then those that parts are called with."""
    for tile in tiles(tuple(steps)):
        yield tile.target.tensor
        for access in accesses(tile.value):
            yield access.tensor
    for call in calls(steps):
        yield from (name for name, _ in call.arrays)


def certain_accesses(expr: Expr) -> Iterator[Access]:
    """Accesses that are evaluated at every point: not those in the branches of a choice, nor with data-dependent
    offsets."""
    match expr:
        case Access(_, index):
            if not any(accesses(part) for part in index):
                yield expr
        case Call("where", (condition, _, _)):
            yield from certain_accesses(condition)
        case _:
            for child in children(expr):
                yield from certain_accesses(child)
