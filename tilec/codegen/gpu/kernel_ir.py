"""A kernel between tile program and C++: what the threads of a block do, with every decision on the step it is about.

The passes of `pipeline` make it, `kernel_text` prints it for people and `verify_kernel` states its rules; the modules
that print C++ decide nothing of what stands here. Windows are in tensor coordinates, as in tile programs. Variables and
arrays that passes add have names that begin with `#`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from tilec.codegen.gpu.fragments import Described, Fragment
from tilec.codegen.gpu.kernel_names import UNIT
from tilec.codegen.gpu.lanes import LaneMap
from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Binary, Const, Expr, Scalar, TensorExpr
from tilec.ir.matrix_units import MatrixProduct, MatrixUnit
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Buffer

WHOLE = 0
"""Of `unroll`: all turns of a loop."""

Arrival = Literal["now", "later"]

Unroll = int | None
"""Turns of a loop that are unrolled: None as the compiler likes, WHOLE all."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel is started: a `grid` of blocks of `threads`, which are units of `lanes`, each block with
    `shared_bytes`. Registers suffice for so many `resident` blocks of a core; a lane is expected to need `registers`
    bytes of them."""

    grid: Expr
    threads: int
    lanes: int
    resident: int
    registers: int
    shared_bytes: Expr

    @property
    def units(self) -> int:
        """Units of a block."""
        return max(1, self.threads // self.lanes)


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of a tile, or of an array in registers, as a lane sees it: loops `outer` (rounds) and `inner`
    (neighbours), variable -> count.

    `position` is the point, `slot` its number among the lane's, both over the loop variables; `inside` holds where
    the lane has a point, None when it always does.
    """

    name: str
    outer: tuple[str, Expr]
    inner: tuple[str, int]
    position: Expr
    slot: Expr
    inside: Expr | None = None


@dataclass(frozen=True, slots=True)
class Declare:
    """An array begins: registers of each lane, or a pointer to one of its copies in shared memory."""

    buffer: Buffer
    copy: Expr = Const(0)


@dataclass(frozen=True, slots=True)
class Fill:
    """Set every element of an array, of one in shared memory as copies do; `active` as of tiles."""

    buffer: Buffer
    value: Scalar
    vector: int = 1
    unroll: Unroll = None
    active: Expr | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy the window `[lo, hi)` of a tensor between `upper`, which holds it, and `lower`: `up`, with `fill` where
    there are no elements, or down.

    Threads copy `vector` neighbours at once, under the conditions `inside`; below they exist under those of `present`;
    there are none where they always hold. Into and out of shared memory all threads copy, in turns that are unrolled so
    often; elements have arrived `now`, or `later`: when they were committed and waited for. Of an array in registers
    each lane copies what it holds, along `axes`. `active` as of tiles."""

    upper: Buffer
    lower: Buffer
    lo: tuple[Expr, ...]
    hi: tuple[Expr, ...]
    up: bool
    fill: Scalar | None = None
    arrival: Arrival = "now"
    vector: int = 1
    unroll: Unroll = None
    axes: tuple[Axis, ...] = ()
    inside: tuple[Expr, ...] = ()
    present: tuple[Expr, ...] = ()
    active: Expr | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """The copies that a thread began since the last such step, and that arrive later, are a group."""


@dataclass(frozen=True, slots=True)
class Wait:
    """All groups of copies of a thread have arrived but the last `left`; other threads see them behind a barrier."""

    left: int


@dataclass(frozen=True, slots=True)
class Fence:
    """What threads have stored in shared memory is there for instructions that read it asynchronously."""


@dataclass(frozen=True, slots=True)
class Barrier:
    """All threads of a block reach this point before any passes it."""


@dataclass(frozen=True, slots=True)
class MatrixTile:
    """A tile as a unit of matrices computes it: so many instructions `down` its rows and `across` its columns in steps
    along the depth, which are unrolled so often, with rows and columns read as `factors` tell. The warps of a group,
    where several execute an instruction together, have iterations of the loop `warps` that follow one another."""

    unit: MatrixUnit
    product: MatrixProduct
    warps: Spread | None = None
    down: int = 0
    across: int = 0
    unroll: Unroll = None
    factors: tuple[Fragment | Described, ...] = ()


@dataclass(frozen=True, slots=True)
class Ahead:
    """An operand that a lane loads into an array before the points that read it: what `access` reads in the iterations
    of loops, variable -> count, neighbours along the loop `along` so many at once."""

    access: Access
    counts: Mapping[str, int]
    vector: int = 1
    along: str = ""


@dataclass(frozen=True, slots=True)
class Tile:
    """Compute `expr` at every point of `box` into `target`, as `ComputeTile` does. The points lie on `lanes`, or as the
    unit of `matrix` has them.

    A lane goes along `axes`, one an iterator. The points of the loops `together`, variable -> count, it computes at
    once, with operands loaded `ahead`, and stores so many neighbours at once.
    Where all units go on together, `active` is the condition for one to have work. `meanwhile` begins when the tile's
    instructions are in flight, before they are waited for."""

    expr: TensorExpr
    box: tuple[tuple[str, Expr, Expr], ...]
    target: Buffer
    operands: tuple[tuple[str, Buffer], ...]
    accumulate: bool = False
    unit: str = ""
    lanes: LaneMap = ()
    matrix: MatrixTile | None = None
    axes: tuple[Axis, ...] = ()
    together: Mapping[str, int] = field(default_factory=dict)
    ahead: tuple[Ahead, ...] = ()
    vector: int = 1
    active: Expr | None = None
    meanwhile: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class For:
    """`for variable in range(extent)`, all threads together, unrolled so often. Where `stages` > 1 copies for that many
    iterations less one are on their way while one is computed."""

    variable: str
    extent: Expr
    body: tuple[Step, ...]
    unroll: Unroll = None
    stages: int = 1


@dataclass(frozen=True, slots=True)
class If:
    """The body where a variable lies below an end, for all threads or for none."""

    variable: str
    end: Expr
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Let:
    """The body with a variable of a value."""

    variable: str
    value: Expr
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """A loop whose iterations blocks or units take, in stripes as in tile programs."""

    variable: str
    extent: Expr
    stripe: int = 1


def iterations(extents: Sequence[Expr]) -> Expr:
    """The product of extents."""
    total: Expr = Const(1)
    for extent in extents:
        total = simplify(Binary("*", total, extent))
    return total


@dataclass(frozen=True, slots=True)
class Units:
    """A nest of loops with `total` iterations, a `count` where it is a number, of which each unit takes its own: in
    turns; or the first units one each, while the others go past, or all go through the body together, the first unit
    with iteration `first`, and steps say which units are `active`."""

    nest: tuple[Spread, ...]
    body: tuple[Step, ...]
    total: Expr
    count: int | None = None
    take: Literal["turns", "first", "together"] = "turns"
    first: Expr = Const(0)

    def active(self, units: int) -> Expr | None:
        """The condition for one of so many units of a block to have an iteration, where all go on together; None where
        all have one, or those that have none go past."""
        if self.take != "together" or (self.first == Const(0) and self.count == units):
            return None
        if self.first == Const(0) and self.count is not None:
            return Binary("<", UNIT, Const(self.count))
        return Binary("<", Binary("+", self.first, UNIT), self.total)


Step = Declare | Fill | Copy | Commit | Wait | Fence | Barrier | Tile | For | If | Let | Units
Nested = For | If | Let | Units


@dataclass(frozen=True, slots=True)
class KernelIR:
    """A kernel: blocks take iterations of `nest`, each does `body`. `held` tells how lanes hold the arrays in
    registers, `shapes` those of tensors; of `fast` functions an approximation does."""

    name: str
    levels: tuple[PlanLevel, ...]
    symbols: tuple[str, ...]
    parameters: tuple[Buffer, ...]
    outputs: tuple[str, ...]
    nest: tuple[Spread, ...]
    body: tuple[Step, ...]
    shapes: Mapping[str, tuple[Expr, ...]]
    held: Mapping[str, LaneMap] = field(default_factory=lambda: MappingProxyType({}))
    launch: Launch | None = None
    fast: frozenset[str] = frozenset()

    @property
    def launched(self) -> Launch:
        """How it is started, behind the pass that chooses it."""
        assert self.launch is not None
        return self.launch

    def is_private(self, buffer: Buffer) -> bool:
        """Whether a buffer lies in registers, each unit with its own."""
        return buffer.level == self.levels[-1].name

    def is_global(self, buffer: Buffer) -> bool:
        """Whether a buffer lies in memory of the device."""
        return buffer.level == self.levels[0].name


def steps(body: Iterable[Step]) -> Iterator[Step]:
    """Every step, those with a body before it."""
    for step in body:
        yield step
        if isinstance(step, Nested):
            yield from steps(step.body)
        elif isinstance(step, Tile):
            yield from steps(step.meanwhile)


def tiles(body: Iterable[Step]) -> Iterator[Tile]:
    """Every tile."""
    return (step for step in steps(body) if isinstance(step, Tile))


def registers_in(kernel: KernelIR) -> dict[str, Buffer]:
    """The arrays in registers, by name."""
    declared = (step.buffer for step in steps(kernel.body) if isinstance(step, Declare))
    return {buffer.name: buffer for buffer in declared if kernel.is_private(buffer)}
