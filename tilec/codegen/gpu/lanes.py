"""Lane maps: how the lanes of a unit share the points of a tile, or the elements of an array in registers.

A unit is what a spread loop of the highest level runs on: a thread, of one lane, or a warp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilec.errors import UnsupportedError
from tilec.ir.algebra import bounds_of
from tilec.ir.expr import Access, Expr, accesses, constant_value
from tilec.ir.lane_counts import lane_counts
from tilec.ir.matrix_units import MatrixProduct, MatrixUnit, Span
from tilec.ir.program import Buffer

VECTORS = (4, 2, 1)
"""Neighbours that a lane holds, the most first."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes `lane // step % count` along one axis: an iterator of a tile or a dimension of a buffer.

    Position along it + (slot // vector) * (count * vector) + (lane // step % count) * vector + slot % vector."""

    along: str | int
    vector: int
    count: int
    step: int = 1


LaneMap = tuple[Lanes, ...]
"""The axes along which lanes lie; none: every lane has it all."""


def axis_lanes(lanes: LaneMap, along: str | int) -> Lanes | None:
    """The lanes along an axis."""
    return next((each for each in lanes if each.along == along), None)


def idle_lanes(lanes: LaneMap, total: int) -> int:
    """The bits of a lane's number that make no difference to what it has."""
    return (total - 1) & ~sum((each.count - 1) * each.step for each in lanes)


def product_map(unit: MatrixUnit, product: MatrixProduct) -> LaneMap:
    """How lanes hold the sums of a unit."""
    rows, columns = unit.sums
    return _along_both(product.rows, rows, product.columns, columns)


def factor_map(unit: MatrixUnit, product: MatrixProduct, access: Access) -> LaneMap:
    """How lanes hold the fragments of the factor that an access is part of."""
    assert unit.left is not None
    assert unit.right is not None
    if access in accesses(product.left):
        return _along_both(product.rows, unit.left[0], product.depth, unit.left[1])
    return _along_both(product.depth, unit.right[0], product.columns, unit.right[1])


def _along_both(first: str, outer: Span, last: str, inner: Span) -> LaneMap:
    spans = ((last, inner), (first, outer))
    return tuple(Lanes(along, span.vector, span.lanes, span.step) for along, span in spans if span.lanes > 1)


def along_all(widths: Sequence[tuple[str | int, int]], lanes: int) -> LaneMap:
    """Lanes along the last axis that is wide enough for all, else along the last ones together."""
    full = next(((axis, width) for axis, width in reversed(widths) if width >= lanes), None)
    if full is not None:
        return (Lanes(full[0], vector_of(full[1], lanes), lanes),)
    counts = lane_counts([width for _, width in reversed(widths)], lanes)
    found, step = list[Lanes](), 1
    for (axis, width), count in zip(reversed(widths), counts, strict=True):
        if count > 1:
            found.append(Lanes(axis, vector_of(width, count), count, step))
            step *= count
    return tuple(found)


def in_vectors(widths: Sequence[tuple[str | int, int]], lanes: int, vector: int) -> LaneMap:
    """Lanes with so many neighbours each along the last axis, the others along the axes before it; none where there are
    too few points."""
    if not widths or widths[-1][1] < vector or widths[-1][1] % vector:
        return ()
    (last, width), before = widths[-1], widths[:-1]
    count = min(lanes, width // vector)
    rest = lanes // count
    more = along_all(before, rest) if rest > 1 else ()
    if lanes % count or idle_lanes(more, rest) or any(each.vector > 1 for each in more):
        return ()
    return (Lanes(last, vector, count), *(replace(each, step=each.step * count) for each in more))


def vector_of(width: int, lanes: int) -> int:
    """Neighbours that a lane takes of so many points."""
    return next(v for v in VECTORS if v == 1 or width % (lanes * v) == 0)


def array_shape(lanes: LaneMap, buffer: Buffer) -> tuple[int, ...]:
    """The extents of a register buffer in one lane."""
    shape = [upper(extent, buffer) for extent in buffer.shape]
    for held in lanes:
        assert isinstance(held.along, int)
        shape[held.along] = -(-shape[held.along] // (held.count * held.vector)) * held.vector
    return tuple(shape)


def upper(extent: Expr, buffer: Buffer) -> int:
    """The constant extent of a register buffer. Raises UnsupportedError for one that varies."""
    value = constant_value(extent)
    value = bounds_of(extent)[1] if value is None else value
    if value is None:
        raise UnsupportedError(
            f"buffer {buffer.name} lies in registers and has no constant size", hint="Plan for fixed sizes."
        )
    return value
