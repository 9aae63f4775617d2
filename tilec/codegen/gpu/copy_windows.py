"""Which element of a window a thread copies, where its neighbours lie, and under which conditions it is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.codegen.gpu.axes import inside
from tilec.codegen.gpu.guards import between
from tilec.codegen.gpu.index_facts import is_multiple
from tilec.codegen.gpu.kernel_ir import Axis, Copy
from tilec.codegen.gpu.kernel_names import THREAD
from tilec.codegen.gpu.ranges import with_ranges
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, Var, constant_value, substitute
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer
from tilec.ir.storage import position

WIDEST = 16
"""Bytes that a thread loads or stores at most at once."""

NUMBER = Var("#e")
"""The number of an element, or of a vector, among those that the threads of a block copy."""

NEIGHBOUR = "#neighbour"
"""The variable that counts the elements of a vector in a row."""

Shapes = Mapping[str, tuple[Expr, ...]]


@dataclass(frozen=True, slots=True)
class Numbered:
    """The `index` of the first element of vector NUMBER, of `total`, and the `ranges` with NUMBER."""

    index: list[Expr]
    total: Expr
    ranges: KnownRanges


def numbered(upper: Buffer, lower: Buffer, vector: int, threads: int, ranges: KnownRanges) -> Numbered:
    """The vectors of the window of `upper`, in the order in which they lie in `lower`."""
    order, row = _order(lower), _row(upper, lower) if vector > 1 else None
    extents = {d: upper.shape[d] for d in order}
    if row is not None:
        extents[row] = simplify(Binary("//", extents[row], Const(vector)))
    total: Expr = Const(1)
    for d in order:
        total = simplify(Binary("*", total, extents[d]))
    inner = with_ranges(ranges, {NUMBER.name: total, THREAD.name: threads})
    offsets: list[Expr] = [Const(0)] * len(order)
    step: Expr = Const(1)
    for place, d in enumerate(reversed(order)):
        at = simplify(Binary("//", NUMBER, step), inner)
        outermost = place == len(order) - 1
        offsets[d] = at if outermost else simplify(Binary("%", at, extents[d]), inner)
        step = simplify(Binary("*", step, extents[d]))
    if row is not None:
        offsets[row] = simplify(Binary("*", offsets[row], Const(vector)), inner)
    index = [simplify(Binary("+", a, b), inner) for a, b in zip(upper.lo, offsets, strict=True)]
    return Numbered(index, total, inner)


def rows_divide(upper: Buffer, lower: Buffer, vector: int) -> bool:
    """Whether whole vectors fill the rows of the upper of two buffers."""
    row = _row(upper, lower)
    extent = constant_value(upper.shape[row]) if row is not None else None
    return extent is not None and extent % vector == 0


def aligned(buffers: Sequence[Buffer], index: Sequence[Expr], vector: int, ranges: KnownRanges) -> bool:
    """Whether vectors from an index on lie at multiples of their size in all buffers."""
    return all(is_multiple(position(buffer, index, ranges), vector, ranges) for buffer in buffers)


def _order(buffer: Buffer) -> tuple[int, ...]:
    """The dimensions of a buffer in the order of storage, outermost first."""
    return buffer.layout or tuple(range(len(buffer.shape)))


def _row(upper: Buffer, lower: Buffer) -> int | None:
    """The dimension of rows: the last one in storage but for those of extent 1; None where there is none, or where it
    is another one in either buffer."""
    shapes = list(zip(upper.shape, lower.shape, strict=True))
    rows = {next((d for d in reversed(_order(b)) if shapes[d] != (Const(1), Const(1))), None) for b in (upper, lower)}
    return rows.pop() if len(rows) == 1 else None


def conditions(shapes: Shapes, copy: Copy, index: Sequence[Expr], ranges: KnownRanges) -> tuple[list[Expr], list[Expr]]:
    """(conditions for an element to be copied, conditions for it to exist below), without those that always hold."""
    own: list[Expr] = []
    exists: list[Expr] = []
    lower = copy.lower
    for d, at in enumerate(index):
        own += between(at, copy.lo[d], copy.hi[d], ranges)
        exists += between(at, lower.lo[d], lower.hi[d], ranges)
        exists += between(at, Const(0), shapes[copy.upper.tensor][d], ranges)
    exists = list(dict.fromkeys(exists))
    if copy.up and copy.fill is not None:
        return own, exists
    return list(dict.fromkeys((*own, *exists))), []


def of_neighbours(
    shapes: Shapes, copy: Copy, index: Sequence[Expr], vector: int, ranges: KnownRanges
) -> tuple[list[Expr], list[Expr]]:
    """The same for each element of a vector that begins at an index; they name NEIGHBOUR where elements of a vector
    differ."""
    row = _row(copy.upper, copy.lower)
    if vector == 1 or row is None:
        return conditions(shapes, copy, index, ranges)
    each = [Binary("+", at, Var(NEIGHBOUR)) if d == row else at for d, at in enumerate(index)]
    return conditions(shapes, copy, each, with_ranges(ranges, {NEIGHBOUR: vector}))


def of_registers(shapes: Shapes, copy: Copy, ranges: KnownRanges) -> tuple[list[Expr], list[Expr]]:
    """The same for each element of an array in registers that a lane holds, at a point of the copy's axes."""
    own, missing = conditions(shapes, copy, [each.position for each in copy.axes], ranges)
    return list(dict.fromkeys((*inside(copy.axes), *own))), missing


def last_neighbours(axes: Sequence[Axis]) -> tuple[str, int]:
    """The loop over neighbours along the last axis that has any; one of a single turn where none has."""
    return next((each.inner for each in reversed(axes) if each.inner[1] > 1), ("", 1))


def contiguous(buffer: Buffer, index: Sequence[Expr], variable: str, count: int, ranges: KnownRanges) -> bool:
    """Whether elements follow one another as a variable counts up, the first at a multiple of `count`."""
    flat = position(buffer, index, ranges)
    first = simplify(substitute(flat, {variable: Const(0)}), ranges)
    if simplify(Binary("-", Binary("-", flat, first), Var(variable)), ranges) != Const(0):
        return False
    return is_multiple(first, count, ranges)


def side_by_side(buffer: Buffer, index: Sequence[Expr], variable: str, count: int, ranges: KnownRanges) -> bool:
    """Whether elements follow one another in each of the runs of `count` that a variable goes through."""
    within = f"{variable}."
    whole = Binary("+", Binary("*", Var(variable), Const(count)), Var(within))
    return contiguous(buffer, [substitute(each, {variable: whole}) for each in index], within, count, ranges)
