"""Loads that fill: the part of a window outside the tensor takes a constant, the part inside is copied."""

from __future__ import annotations

from tilec.codegen.cpu.flatten import Box, copy_tile, fill_tile
from tilec.codegen.cpu.settle import at_least, ranges_with, settle
from tilec.codegen.cpu.tree import Range, Storage, Tile
from tilec.ir.algebra import Ranges, simplify
from tilec.ir.expr import Binary, Call, Const, Expr, Scalar, Var


def filled_copy(
    target: Storage, source: Storage, box: Box, valid: Box, fill: Scalar, ranges: Ranges
) -> list[Tile | Range]:
    """Copy `box` where it meets `valid` and fill the rest, dimension by dimension: no element is tested."""
    return _part(target, source, box, valid, fill, ranges, 0)


def _part(
    target: Storage, source: Storage, box: Box, valid: Box, fill: Scalar, ranges: Ranges, dim: int
) -> list[Tile | Range]:
    """The box from dimension `dim` inwards; the dimensions before are inside already."""
    while dim < len(box) and _fits(box[dim], valid[dim], ranges):
        dim += 1
    if dim == len(box):
        tile = copy_tile(target, source, box, ranges)
        return [] if tile is None else [tile]
    (lo, hi), (first, last) = box[dim], valid[dim]
    begin = settle(Call("minimum", (Call("maximum", (lo, first)), hi)), ranges)
    end = settle(Call("maximum", (begin, Call("minimum", (hi, last)))), ranges)
    steps: list[Tile | Range] = []
    steps += _fill(target, _replaced(box, dim, (lo, begin)), fill, ranges)
    inner = _replaced(box, dim, (begin, end))
    if all(_fits(box[d], valid[d], ranges) for d in range(dim + 1, len(box))):
        tile = copy_tile(target, source, inner, ranges)
        steps += [] if tile is None else [tile]
    else:
        steps += _rows(target, source, inner, valid, fill, ranges, dim)
    steps += _fill(target, _replaced(box, dim, (end, hi)), fill, ranges)
    return steps


def _rows(
    target: Storage, source: Storage, box: Box, valid: Box, fill: Scalar, ranges: Ranges, dim: int
) -> list[Tile | Range]:
    """A loop over one dimension whose rows are copied and filled in turn."""
    lo, hi = box[dim]
    variable = f"@{dim}"
    last = simplify(Binary("-", Binary("-", hi, lo), Const(1)))
    row = settle(Binary("+", lo, Var(variable)), ranges)
    one = _replaced(box, dim, (row, simplify(Binary("+", row, Const(1)))))
    inside = ranges_with(ranges, {variable: (Const(0), last)})
    body = _part(target, source, one, _replaced(valid, dim, one[dim]), fill, inside, dim + 1)
    count = settle(Binary("-", hi, lo), ranges)
    return [Range(variable, Const(0), count, tuple(body))] if body else []


def _fits(ends: tuple[Expr, Expr], valid: tuple[Expr, Expr], ranges: Ranges) -> bool:
    return at_least(ends[0], valid[0], ranges) and at_least(valid[1], ends[1], ranges)


def _fill(target: Storage, box: Box, fill: Scalar, ranges: Ranges) -> list[Tile | Range]:
    tile = fill_tile(target, box, fill, ranges)
    return [] if tile is None else [tile]


def _replaced(box: Box, dim: int, ends: tuple[Expr, Expr]) -> Box:
    return (*box[:dim], ends, *box[dim + 1 :])
