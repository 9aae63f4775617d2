"""Rules of the loops over the points of tiles and the elements of copies.

Axes are those of a box, or of an array, and of its lanes; points that are computed together are those of whole loops,
operands that are loaded ahead move with these; what is moved at once lies side by side, at multiples of its size, and
is there as a whole; copies are guarded where their windows end; instructions cover the sums of a product, and read its
factors as these lie.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilec.codegen.gpu.axes import array_axes, axis_ranges, innermost, inside, tile_axes
from tilec.codegen.gpu.copy_windows import (
    NEIGHBOUR,
    aligned,
    contiguous,
    last_neighbours,
    numbered,
    of_neighbours,
    of_registers,
    rows_divide,
    side_by_side,
)
from tilec.codegen.gpu.fragments import sums_of_instruction
from tilec.codegen.gpu.guards import depend
from tilec.codegen.gpu.kernel_ir import Ahead, Copy, Fill, KernelIR, MatrixTile, Tile
from tilec.codegen.gpu.kernel_text import step_text
from tilec.codegen.gpu.passes.read_factors import factors_of
from tilec.codegen.gpu.ranges import of_body, steps_inside
from tilec.ir.algebra import simplify
from tilec.ir.expr import Expr, constant_value, substitute
from tilec.ir.known_ranges import KnownRanges


def check_points(kernel: KernelIR, ranges: KnownRanges) -> Iterator[str]:
    """The rules that a kernel breaks; `ranges` are those of its symbols."""
    for step, known in steps_inside(kernel.body, of_body(kernel, ranges)):
        problems: Iterator[str] = iter(())
        if isinstance(step, Tile):
            problems = _tile(kernel, step, known)
        elif isinstance(step, Copy):
            private = kernel.is_private(step.upper)
            problems = _registers(kernel, step, known) if private else _together(kernel, step, known)
        elif isinstance(step, Fill) and step.vector > 1:
            at = numbered(step.buffer, step.buffer, step.vector, kernel.launched.threads, known)
            whole = rows_divide(step.buffer, step.buffer, step.vector)
            problems = iter(() if whole and aligned((step.buffer,), at.index, step.vector, at.ranges) else (_APART,))
        yield from (f"{step_text(kernel, step)}: {problem}" for problem in problems)


_APART, _PART = "what is moved at once does not lie side by side", "not all that is moved at once is there"


def _tile(kernel: KernelIR, tile: Tile, ranges: KnownRanges) -> Iterator[str]:
    if tile.axes != tile_axes(kernel, tile, ranges, {each.name: each.inner[1] for each in tile.axes}):
        yield "its lanes go along other axes than those of its box"
        return
    if tile.matrix is not None:
        yield from _instructions(kernel, tile, tile.matrix, ranges)
        return
    spatial = tile.axes[: len(tile.expr.spatial)]
    loops = {name: constant_value(n) for name, n in [*(a.outer for a in spatial), *(a.inner for a in spatial)]}
    if any(loops.get(variable) != count for variable, count in tile.together.items()):
        yield "points of other loops than those of its axes are computed together"
        return
    known = axis_ranges(tile.axes, ranges)
    for ahead in tile.ahead:
        yield from _ahead(tile, ahead, known)
    if tile.vector > 1:
        fastest, index = innermost(tile.together), [each.position for each in spatial]
        if tile.together.get(fastest) != tile.vector or depend(inside(spatial), fastest):
            yield "what is stored at once is not computed together"
        elif not contiguous(tile.target, index, fastest, tile.vector, known):
            yield _APART


def _ahead(tile: Tile, ahead: Ahead, ranges: KnownRanges) -> Iterator[str]:
    """The rules of an operand that is loaded ahead."""
    buffer = dict(tile.operands)[ahead.access.tensor]
    points = {**tile.together} | dict(each.inner for each in tile.axes if each.name in tile.expr.reduce)
    positions = {each.name: each.position for each in tile.axes}
    index = [simplify(substitute(each, positions), ranges) for each in ahead.access.index]
    if any(depend(index, variable) for variable, count in points.items() if count > 1 and variable not in ahead.counts):
        yield f"{buffer.name} is loaded ahead of other points"
    elif any(points.get(variable) != count for variable, count in ahead.counts.items()):
        yield f"{buffer.name} is loaded ahead of points that are computed later"
    elif ahead.vector > 1:
        whole = ahead.counts[ahead.along] % ahead.vector == 0
        if depend(inside(tile.axes, ahead.access), ahead.along) or not whole:
            yield _PART
        elif not side_by_side(buffer, index, ahead.along, ahead.vector, ranges):
            yield _APART


def _instructions(kernel: KernelIR, tile: Tile, matrix: MatrixTile, ranges: KnownRanges) -> Iterator[str]:
    """The rules of a product."""
    slots = {each.name: (constant_value(each.outer[1]) or 0) * each.inner[1] for each in tile.axes}
    rows, columns = sums_of_instruction(matrix.unit)
    if rows * matrix.down < slots[matrix.product.rows] or columns * matrix.across < slots[matrix.product.columns]:
        yield f"{matrix.down} x {matrix.across} instructions do not cover it"
    elif matrix.factors != factors_of(kernel, tile, matrix, ranges):
        yield "its factors are read otherwise than they lie"


def _registers(kernel: KernelIR, copy: Copy, ranges: KnownRanges) -> Iterator[str]:
    if copy.axes != array_axes(kernel, copy.upper, ranges, copy.axes[-1].inner[1] if copy.axes else 1):
        yield "its lanes go along other axes than those of its array"
        return
    known = axis_ranges(copy.axes, ranges)
    variable, count = last_neighbours(copy.axes)
    yield from _guards(copy, of_registers(kernel.shapes, copy, known), variable)
    index = [each.position for each in copy.axes]
    if copy.vector > 1 and (copy.present or count % copy.vector):
        yield _PART
    elif copy.vector > 1 and not contiguous(copy.lower, index, variable, copy.vector, known):
        yield _APART


def _together(kernel: KernelIR, copy: Copy, ranges: KnownRanges) -> Iterator[str]:
    upper, lower, vector = copy.upper, copy.lower, copy.vector
    at = numbered(upper, lower, vector, kernel.launched.threads, ranges)
    yield from _guards(copy, of_neighbours(kernel.shapes, copy, at.index, vector, at.ranges), NEIGHBOUR)
    whole = vector == 1 or rows_divide(upper, lower, vector)
    if not whole or not aligned((upper, lower), at.index, vector, at.ranges):
        yield _APART


def _guards(copy: Copy, wanted: tuple[list[Expr], list[Expr]], variable: str) -> Iterator[str]:
    """The rules of guards of a copy whose neighbours a variable counts."""
    if (copy.inside, copy.present) != tuple(map(tuple, wanted)):
        yield "it is guarded otherwise than its window ends"
    elif copy.vector > 1 and depend((*copy.inside, *copy.present), variable):
        yield _PART
