"""The tile program: the lowered form of a plan that all back ends, the machine and the cost model read (Welder, 3.3).

A buffer is a window onto a tensor at a level; accesses are written in tensor coordinates, so loads and stores copy the
intersection of two windows with the tensor and need no indices. Statements name buffers by name; `Allocate` introduces
them, `Program.parameters` are the whole tensors at the lowest level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilec.ir.expr import Expr, Scalar, TensorExpr
from tilec.ir.plan import PlanLevel

Combine = Literal["none", "sum", "max", "min", "prod"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the elements of a parameter lie in a larger tensor of some shape, the state that they update: the element
    at `iterators` is the element `index` of it. An index may read other parameters."""

    shape: tuple[Expr, ...]
    iterators: tuple[str, ...]
    index: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A window `[lo, hi)` onto `tensor`, stored at `level`.

    `lo` and `hi` are expressions over the loop variables around it and may leave the tensor; `shape` is the maximal
    width of the window, which is allocated; `layout` permutes the dimensions in storage (outermost first, empty for
    row-major), and `pad` elements that stay unused follow every row of the innermost one, or rows are stored in panels
    of `swizzle` bytes whose pieces are permuted (`tilec.ir.storage`); `copies` is the number of instances for
    pipelining.

    `offset` is its place in bytes, from the start of an instance of its level, or of the pool that the level shares
    (`tilec.ir.address_spaces`): there lie its copies, one after another, for each iteration that a unit executes
    concurrently. None at a level without addresses, and for parameters, whose addresses the caller passes.

    A parameter with a `place` is part of the tensor whose address the caller passes.
    """

    name: str
    tensor: str
    level: str
    lo: tuple[Expr, ...]
    hi: tuple[Expr, ...]
    shape: tuple[Expr, ...]
    ttype: str
    layout: tuple[int, ...] = ()
    copies: int = 1
    offset: Expr | None = None
    pad: int = 0
    swizzle: int = 0
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Allocate:
    """Reserve a buffer until the enclosing loop body ends; its contents are undefined."""

    buffer: Buffer


@dataclass(frozen=True, slots=True)
class Fill:
    """Set every element of a buffer."""

    buffer: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class LoadTiles:
    """Copy the intersection of both windows and the tensor into `target` from `source`, one or more levels below.

    With `fill`, elements of the target outside the tensor take that value; without, the window lies inside.

    With `stages` > 1 the load, in a serial loop, is asynchronous: its target, of which there are as many copies, is
    undefined until a `Wait`. It begins `stages` - 1 iterations earlier, behind the barrier that follows the `Wait` of
    that iteration, and in front of the loop for the first iterations.
    """

    target: str
    source: str
    fill: Scalar | None = None
    stages: int = 1


@dataclass(frozen=True, slots=True)
class Wait:
    """The asynchronous loads of this iteration into buffers have arrived; other units see them behind a barrier."""

    buffers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComputeTile:
    """Evaluate `expr` for every point of `box` (iterator -> [lo, hi)) into `target`.

    `operands` maps each tensor read to the buffer it is read from. `accumulate` combines the result with the contents
    of the target by the expression's reduction; a pure expression may read its own target.
    """

    expr: TensorExpr
    box: tuple[tuple[str, Expr, Expr], ...]
    target: str
    operands: tuple[tuple[str, str], ...]
    accumulate: bool = False
    unit: str = ""


@dataclass(frozen=True, slots=True)
class StoreTiles:
    """Copy `[lo, hi)` of the window of `source` (all of it when empty) to `target`, one or more levels below, combined
    with its contents by `combine`."""

    target: str
    source: str
    lo: tuple[Expr, ...] = ()
    hi: tuple[Expr, ...] = ()
    combine: Combine = "none"


@dataclass(frozen=True, slots=True)
class Barrier:
    """Synchronisation: all units of `scope` reach this point before any passes it."""

    scope: str


@dataclass(frozen=True, slots=True)
class Loop:
    """`for variable in range(extent)`. `spread` iterations run side by side on the units of `scope`, in lockstep:
    statements on lower levels inside are collective, statements on the scope's own level private to a unit.

    Units take the iterations of nested spread loops in order, the innermost loop first. Where the outermost one has a
    `stripe` of several, they take so many of its iterations for one of the loops inside it before the next one of
    these (raster)."""

    variable: str
    extent: Expr
    body: tuple[Statement, ...]
    kind: Literal["serial", "spread"] = "serial"
    scope: str = ""
    stripe: int = 1


Statement = Allocate | Fill | LoadTiles | Wait | ComputeTile | StoreTiles | Barrier | Loop


@dataclass(frozen=True, slots=True)
class Program:
    """One kernel. `parameters` are in the order of the kernel's arguments, `outputs` those that it stores."""

    name: str
    levels: tuple[PlanLevel, ...]
    symbols: tuple[str, ...]
    parameters: tuple[Buffer, ...]
    outputs: tuple[str, ...]
    body: tuple[Statement, ...]
