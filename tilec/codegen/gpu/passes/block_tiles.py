"""Which points of a tile a lane computes together, with which operands loaded ahead of them, neighbours at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from tilec.codegen.gpu.axes import axis_ranges, innermost, inside, tile_axes
from tilec.codegen.gpu.copy_windows import WIDEST, contiguous, side_by_side
from tilec.codegen.gpu.guards import depend
from tilec.codegen.gpu.index_facts import is_data_dependent
from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import Ahead, Axis, KernelIR, Step, Tile
from tilec.codegen.gpu.lane_reads import guarded_accesses
from tilec.codegen.gpu.rewrite import rewritten
from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Binary, Expr, constant_value, substitute, variables
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer
from tilec.ir.types import TTYPES

BLOCK = 64
"""Points of a tile in memory that a lane computes together."""

HELD = 512
"""Points of a tile in registers that are unrolled."""

STEP = 4
"""Neighbours along the last spatial and the last reduce iterator that a lane takes together."""

MOST = 96
"""Elements of one operand that a lane holds ahead."""

VECTORS = (8, 4, 2)
"""Neighbours that are loaded or stored at once, the most first."""


def block_tiles(kernel: KernelIR, context: KernelContext) -> KernelIR:
    """The kernel with the axes of its tiles, and how lanes compute the points of those that no unit of matrices does.
    Raises UnsupportedError where lanes share what may be of any width."""

    def blocked(step: Step, known: KnownRanges) -> tuple[Step, ...]:
        if not isinstance(step, Tile):
            return (step,)
        points = None if context.decisions is None else context.decisions.points(step.expr.tensor)
        tile = replace(step, axes=tile_axes(kernel, step, known, _neighbours(step, points)))
        if tile.matrix is None:
            tile = _blocked(kernel, tile, points, axis_ranges(tile.axes, known))
        return (tile,)

    return rewritten(kernel, blocked, context.ranges)


def _neighbours(tile: Tile, points: Mapping[str, int] | None) -> dict[str, int]:
    """Neighbours that a lane takes along iterators; `points` of a plan that the loop around a tile covers are not its
    own."""
    if tile.matrix is not None:
        return {}
    widths = {name: constant_value(simplify(Binary("-", hi, lo))) for name, lo, hi in tile.box}
    spatial, reduce = () if tile.lanes else tile.expr.spatial[-1:], tile.expr.reduce[-1:]
    wanted = {i: STEP if points is None else points.get(i, 1) for i in reduce}
    steps = {i: STEP if n > (widths[i] or n) else n for i, n in wanted.items()}
    return dict.fromkeys(spatial, STEP) | steps


def _blocked(kernel: KernelIR, tile: Tile, points: Mapping[str, int] | None, ranges: KnownRanges) -> Tile:
    spatial = [each for each in tile.axes if each.name in tile.expr.spatial]
    if points is None:
        together = _together(spatial, HELD if kernel.is_private(tile.target) else BLOCK)
    else:
        together = _decided(spatial, points)
    steps = dict(each.inner for each in tile.axes if each.name in tile.expr.reduce and each.inner[1] > 1)
    tile = replace(tile, together=together, ahead=tuple(_all_ahead(kernel, tile, {**together, **steps}, ranges)))
    return replace(tile, vector=_stored_together(kernel, tile, ranges))


def _together(axes: Sequence[Axis], most: int) -> dict[str, int]:
    """The innermost loops of axes, neighbours of all inside rounds of any, with at most so many points."""
    together: dict[str, int] = {}
    for name, extent in reversed([*(each.outer for each in axes), *(each.inner for each in axes)]):
        count = constant_value(extent)
        if count is None or prod(together.values()) * count > most:
            break
        together[name] = count
    return dict(reversed(together.items()))


def _decided(axes: Sequence[Axis], points: Mapping[str, int]) -> dict[str, int]:
    """The loops of axes that cover no more than so many points along each."""
    inner = {each.inner[0]: each.inner[1] for each in axes if each.inner[1] <= points.get(each.name, 1)}
    counts = {each: constant_value(each.outer[1]) for each in axes}
    outer = {
        each.outer[0]: count
        for each, count in counts.items()
        if count is not None and count * each.inner[1] <= points.get(each.name, 1)
    }
    return outer | inner


def _all_ahead(kernel: KernelIR, tile: Tile, counts: Mapping[str, int], ranges: KnownRanges) -> Iterator[Ahead]:
    """The operands in memory that are loaded ahead of the points of loops, which read them."""
    buffers, seen = dict(tile.operands), set[Access]()
    for access, guarded in guarded_accesses(tile.expr.value):
        buffer = buffers[access.tensor]
        if guarded or kernel.is_private(buffer) or access in seen or buffer.name == tile.target.name:
            continue
        ahead = _ahead(buffer, access, tile.axes, counts, ranges)
        if ahead is not None:
            seen.add(access)
            yield ahead


def _ahead(
    buffer: Buffer, access: Access, axes: Sequence[Axis], counts: Mapping[str, int], ranges: KnownRanges
) -> Ahead | None:
    """How an access is loaded ahead; None where each point had better load its own."""
    if any(is_data_dependent(each) for each in access.index):
        return None
    positions = {each.name: each.position for each in axes}
    index = [simplify(substitute(each, positions), ranges) for each in access.index]
    used = frozenset(name for each in index for name in variables(each))
    needed = {variable: count for variable, count in counts.items() if variable in used}
    guards = inside(axes, access)
    vector, along = _vector(buffer, index, needed, guards, ranges)
    reused = any(variable not in needed for variable, count in counts.items() if count > 1)
    wanted = vector > 1 or reused
    return Ahead(access, needed, vector, along) if wanted and prod(needed.values()) <= MOST else None


def _vector(
    buffer: Buffer, index: Sequence[Expr], counts: Mapping[str, int], guards: Sequence[Expr], ranges: KnownRanges
) -> tuple[int, str]:
    """How many neighbours can be loaded at once, and the loop variable that counts them."""
    size = TTYPES[buffer.ttype].bits // 8
    for variable in reversed([*counts]):
        if depend(guards, variable) or buffer.ttype == "bool":
            continue
        for count in VECTORS:
            fits = size * count <= WIDEST and counts[variable] % count == 0
            if fits and side_by_side(buffer, index, variable, count, ranges):
                return count, variable
    return 1, ""


def _stored_together(kernel: KernelIR, tile: Tile, ranges: KnownRanges) -> int:
    """Neighbours of the result that are stored at once."""
    target, size = tile.target, TTYPES[tile.target.ttype].bits // 8
    fastest = innermost(tile.together)
    count = tile.together.get(fastest, 1)
    if kernel.is_private(target) or tile.accumulate or tile.expr.reducer is not None or target.ttype == "bool":
        return 1
    if count not in VECTORS or size * count > WIDEST or depend(inside(tile.axes), fastest):
        return 1
    index = [each.position for each in tile.axes]
    return count if contiguous(target, index, fastest, count, ranges) else 1
