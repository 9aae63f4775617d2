"""Statements of the tile program as tiles over flat memory: computed tiles, copies and fills alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from tilec.codegen.cpu.extents import equal_extents, extent_of, product
from tilec.codegen.cpu.kernel_ir import Dim, Storage, Tile
from tilec.codegen.cpu.simplify_ranges import extend_ranges, simplify_in_ranges
from tilec.codegen.cpu.stride_analysis import form_of
from tilec.ir.algebra import simplify, simplify_scalar
from tilec.ir.expr import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Scalar,
    Var,
    accesses,
    constant_value,
    rebuild,
    substitute,
    variables,
)
from tilec.ir.known_ranges import Ranges
from tilec.ir.program import Combine, ComputeTile
from tilec.ir.scalars import type_of

Box = tuple[tuple[Expr, Expr], ...]
"""[lo, hi) of every dimension, in tensor coordinates."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A buffer as an operand: its storage and the window that holds valid elements."""

    storage: Storage
    lo: tuple[Expr, ...]
    hi: tuple[Expr, ...]


def width(lo: Expr, hi: Expr, ranges: Ranges) -> Expr:
    """hi - lo, simplified."""
    return simplify_in_ranges(Binary("-", hi, lo), ranges)


def _place(
    iterators: Iterable[tuple[str, Expr, Expr]], ranges: Ranges
) -> tuple[dict[str, Dim], dict[str, Expr], Ranges]:
    """Iterators counted from 0: (dimensions that are wider than 1, iterator -> its value, ranges of dimensions)."""
    dims: dict[str, Dim] = {}
    values: dict[str, Expr] = {}
    inside: dict[str, tuple[Expr, Expr]] = {}
    for name, lo, hi in iterators:
        extent = width(lo, hi, ranges)
        if extent == Const(1):
            values[name] = simplify_in_ranges(lo, ranges)
            continue
        dims[name] = Dim(f"%{name}", extent)
        values[name] = simplify_in_ranges(Binary("+", lo, Var(f"%{name}")), ranges)
        inside[f"%{name}"] = (Const(0), simplify(Binary("-", extent, Const(1))))
    return dims, values, extend_ranges(ranges, inside)


def _clamp(index: Expr, lo: Expr, hi: Expr) -> Expr:
    """A data-dependent index kept inside the window it reads."""
    return Call("minimum", (Call("maximum", (index, lo)), Binary("-", hi, Const(1))))


def _flat(expr: Expr, operands: Mapping[str, Operand], ranges: Ranges) -> Expr:
    """The expression with every access as one flat offset into memory, an i64."""
    new = rebuild(expr, lambda e: _flat(e, operands, ranges))
    if not isinstance(expr, Access) or not isinstance(new, Access):
        return new
    operand = operands[expr.tensor]
    types = {name: each.storage.ttype for name, each in operands.items()}
    index = []
    for given, made, lo, hi in zip(expr.index, new.index, operand.lo, operand.hi, strict=True):
        if accesses(made):
            made = _clamp(made if type_of(given, types) == "i64" else Call("i64", (made,)), lo, hi)
        index.append(made)
    return Access(operand.storage.memory, (simplify_in_ranges(operand.storage.offset(tuple(index)), ranges),))


def compute_tile(
    statement: ComputeTile, target: Operand, operands: Mapping[str, Operand], ranges: Ranges
) -> Tile | None:
    """A computed tile; None when its box is empty. `operands` maps tensors to what they are read from."""
    expr = statement.expr
    dims, values, inside = _place(statement.box, ranges)
    spatial = tuple(dims[i] for i in expr.spatial if i in dims)
    reduce = tuple(dims[i] for i in expr.reduce if i in dims)
    if any((d.size or 0) <= 0 for d in spatial if d.size is not None):
        return None
    index = tuple(values[i] for i in expr.spatial)
    place = Access(target.storage.memory, (simplify_in_ranges(target.storage.offset(index), inside),))
    value = simplify_scalar(substitute(expr.value, values), inside)
    combine: Combine = "none"
    if statement.accumulate and expr.reducer in ("sum", "max", "min", "prod"):
        combine = expr.reducer  # type: ignore[assignment]
    value = _flat(value, operands, inside)
    kind, unit = target.storage.ttype, statement.unit
    tile = Tile(spatial, reduce, expr.reducer, value, place, kind, combine, node=expr.tensor, unit=unit)
    return _without_reduction(tile)


def _without_reduction(tile: Tile) -> Tile:
    """A reduction over a single point is no reduction."""
    return replace(tile, reducer=None) if not tile.reduce else tile


def copy_tile(target: Storage, source: Storage, box: Box, ranges: Ranges, combine: Combine = "none") -> Tile | None:
    """The elements of a box, from one storage to another; None when the box is empty."""
    named = tuple((str(d), lo, hi) for d, (lo, hi) in enumerate(box))
    dims, values, inside = _place(named, ranges)
    if any(d.size is not None and d.size <= 0 for d in dims.values()):
        return None
    index = tuple(values[str(d)] for d in range(len(box)))
    read = Access(source.memory, (simplify_in_ranges(source.offset(index), inside),))
    place = Access(target.memory, (simplify_in_ranges(target.offset(index), inside),))
    return Tile(tuple(dims.values()), (), None, read, place, target.ttype, combine)


def fill_tile(target: Storage, box: Box, value: Scalar, ranges: Ranges) -> Tile | None:
    """One value for all elements of a box; None when it is empty."""
    tile = copy_tile(target, target, box, ranges)
    return None if tile is None else replace(tile, value=Const(value))


def _plain_variables(expr: Expr) -> frozenset[str]:
    """Variables that occur outside of the offsets of accesses."""
    if isinstance(expr, Access):
        return frozenset()
    if isinstance(expr, Var):
        return frozenset({expr.name})
    found: frozenset[str] = frozenset()
    for child in _children(expr):
        found |= _plain_variables(child)
    return found


def _children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Binary(_, left, right):
            return (left, right)
        case Call(_, args):
            return args
        case _:
            return ()


def _map_offsets(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with `change` applied to the offset of every outermost access."""
    if isinstance(expr, Access):
        return Access(expr.tensor, (change(expr.index[0]),))
    return rebuild(expr, lambda e: _map_offsets(e, change))


def fuse(tile: Tile, local: Collection[str] = (), lanes: int = 1) -> Tile:
    """Neighbouring dimensions that every offset passes through without a gap become one.

    Vectors must not straddle rows of `local` memories, which have registers for every row: dimensions along which
    those are indexed fuse only when rows are multiples of `lanes`.
    """
    changed = True
    while changed:
        changed = False
        for kind in ("spatial", "reduce"):
            dims: tuple[Dim, ...] = getattr(tile, kind)
            for outer, inner in pairwise(dims):
                if _gapless(tile, outer, inner, local, lanes):
                    tile = _merged(tile, kind, outer, inner)
                    changed = True
                    break
    return tile


def _gapless(tile: Tile, outer: Dim, inner: Dim, local: Collection[str], lanes: int) -> bool:
    names = [d.name for d in tile.dims]
    size = extent_of(inner.extent)
    if {outer.name, inner.name} & _plain_variables(tile.value):
        return False
    for access in (tile.target, *accesses(tile.value)):
        form = form_of(access.index[0], names)
        wide, narrow = form.stride(outer.name), form.stride(inner.name)
        if wide is None or narrow is None or not equal_extents(wide, product((narrow, size))):
            return False
        if access.tensor in local and (wide != 0 or narrow != 0) and (not isinstance(size, int) or size % lanes):
            return False
    return True


def _merged(tile: Tile, kind: str, outer: Dim, inner: Dim) -> Tile:
    extent = simplify(Binary("*", outer.extent, inner.extent))
    dim = Dim(f"{outer.name}{inner.name}", extent)
    values: dict[str, Expr] = {outer.name: Const(0), inner.name: Var(dim.name)}

    def change(offset: Expr) -> Expr:
        return simplify(substitute(offset, values)) if variables(offset) & set(values) else offset

    dims: Collection[Dim] = getattr(tile, kind)
    kept = tuple(dim if d is inner else d for d in dims if d is not outer)
    target = Access(tile.target.tensor, (change(tile.target.index[0]),))
    merged = replace(tile, value=_map_offsets(tile.value, change), target=target)
    return replace(merged, spatial=kept) if kind == "spatial" else replace(merged, reduce=kept)


def size_of(dims: Iterable[Dim]) -> int | None:
    """The number of points, None while an extent is dynamic."""
    total = 1
    for d in dims:
        size = constant_value(d.extent)
        if size is None:
            return None
        total *= size
    return total
