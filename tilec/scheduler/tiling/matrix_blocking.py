"""Register tiles of products that units of matrices compute: whole fragments of rows and columns (W28, L13, L21).

A step of such a tile loads the fragments of its rows and of its columns out of a core's level, and multiplies each with
each; elements that are computed, such as decoded weights, take the operations of vectors. Tiles that extents do not
divide are filled with zeros. A unit that reads memory takes the rows of one instruction, and reads columns once for all
warps of a group; its operands take no registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilec.ir.expr import Access, Call, Const, Expr, TensorExpr, accesses
from tilec.ir.intervals import Candidates
from tilec.ir.matrix_units import MatrixProduct, MatrixUnit
from tilec.ir.types import element_bytes
from tilec.scheduler.analysis.access import runs_along
from tilec.scheduler.analysis.vector_iterator import Vector, can_pack, staged_order
from tilec.scheduler.graph_passes.rematerialize import arithmetic
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.register_blocking import RegisterBlocking, moving

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST = 256
"""Rows or columns of a tile at most."""

LOAD = 4
"""Bytes that a lane loads at once where neighbours along the depth lie side by side."""

TRANSPOSED = 2
"""Bytes of the elements that instructions transpose."""


@dataclass(frozen=True, slots=True)
class MatrixChoice:
    """A unit, how many times as fast as the device's peak it is, and the product that it computes."""

    unit: MatrixUnit
    speed: float
    product: MatrixProduct


def matrix_blocking(
    expr: TensorExpr,
    choice: MatrixChoice,
    shapes: Mapping[str, tuple[Expr, ...]],
    target: TargetModel,
    numbers: Candidates,
    within: Mapping[str, int],
    decided: Mapping[str, int],
) -> RegisterBlocking:
    """The best tile that fits the registers, of equals the one that loads least; else the smallest.

    `within` tells how far iterators run in a core's tile, `decided` which sizes are not to be chosen.
    """
    unit, product = choice.unit, choice.product
    extents = {i: max(1, min(int(numbers.size(e)), within.get(i, MOST**3))) for i, e in expr.domain.items()}
    others = {i: n for i, n in decided.items() if i not in (product.rows, product.columns)}
    products = prod(others.values())
    rows, columns = (
        _sizes(extents[name], whole, most, decided.get(name), unit)
        for name, whole, most in (
            (product.rows, unit.rows, unit.rows if unit.reads_memory else MOST),
            (product.columns, unit.columns, unit.most if unit.reads_memory else MOST),
        )
    )
    m, n = (each.ravel() for each in np.meshgrid(rows, columns, indexing="ij"))
    down, across = -(-m // unit.rows), -(-n // unit.columns)
    lanes = target.lanes(4)
    element = [element_bytes(ttype) for ttype in unit.inputs]
    words = down * unit.rows * unit.depth * element[0] + across * unit.columns * unit.depth * element[1]
    sums = down * unit.rows * across * unit.columns
    fits = (products * sums + (0 if unit.reads_memory else words // 4)) // lanes <= target.registers
    steps = -(-extents[product.depth] // unit.depth)
    steps *= prod(extents[i] for i in expr.reduce if i != product.depth)
    multiplied = 2.0 * sums * unit.depth / (4 * lanes * choice.speed)
    loaded: Floats = np.zeros(m.shape)
    computed: Floats = np.zeros(m.shape)
    widths = (down * unit.rows, across * unit.columns // unit.warps)
    for (body, _), width, size in zip(_sides(product), widths, element, strict=True):
        alone = _access_of(body) is None and not all(
            _side_by_side(a, product.depth, expr, shapes) for a in accesses(body)
        )
        loaded = loaded + width * unit.depth * size * (LOAD / size if alone else 1.0)
        if _access_of(body) is None:  # its elements are computed: two operations of a vector begin in a cycle
            computed = computed + width * unit.depth / lanes * arithmetic(body) / 2
    step = np.maximum(multiplied, np.maximum(loaded / target.feed, computed))
    cycles = products * (steps * step + sums / lanes) + target.costs.tile_overhead
    whole = cycles * -(-extents[product.rows] // m) * -(-extents[product.columns] // n)
    fitting = np.where(fits, whole, np.inf) if fits.any() else sums
    best = int(np.lexsort((loaded, -sums, np.round(fitting, 3)))[0])
    sizes = dict.fromkeys(moving(expr), 1) | others | {product.rows: int(m[best]), product.columns: int(n[best])}
    return RegisterBlocking(sizes, float(cycles[best]))


def _sizes(extent: int, whole: int, most: int, decided: int | None, unit: MatrixUnit) -> Ints:
    """Sizes of whole fragments up to an extent and to the most, and all of a short one."""
    if decided is not None:
        return np.asarray([decided], np.int64)
    found = list(range(whole, min(extent, most) + 1, whole))
    ragged = extent <= most and extent % whole != 0 and not unit.reads_memory
    return np.asarray([*found, extent] if ragged or not found else found, np.int64)


def matrix_vector(
    expr: TensorExpr, choice: MatrixChoice, shapes: Mapping[str, tuple[Expr, ...]], constants: frozenset[str]
) -> Vector:
    """The layouts that a product wants: neighbours along its depth side by side, or, of 16 bits, those along its rows
    or columns, where instructions transpose. Constants are packed for it, others laid out anew in a core's level."""
    product = choice.product
    packed, staged = list[Access](), list[Access]()
    for (body, along), ttype in zip(_sides(product), choice.unit.inputs, strict=True):
        access = _access_of(body)
        if access is None or _side_by_side(access, product.depth, expr, shapes):
            continue
        if element_bytes(ttype) == TRANSPOSED and _side_by_side(access, along, expr, shapes):
            continue
        if access.tensor in constants and can_pack(access, expr):
            packed.append(access)
        elif staged_order(access, expr, product.depth) is not None:
            staged.append(access)
    return Vector("none", product.depth, tuple(packed), tuple(staged))


def _sides(product: MatrixProduct) -> tuple[tuple[Expr, str], tuple[Expr, str]]:
    """The factors, each with the iterator that it alone has."""
    return (product.left, product.rows), (product.right, product.columns)


def _access_of(body: Expr) -> Access | None:
    """The access that a factor is, maybe inside a guard."""
    match body:
        case Access():
            return body
        case Call("where", (_, Access() as access, Const())):
            return access
    return None


def _side_by_side(access: Access, iterator: str, expr: TensorExpr, shapes: Mapping[str, tuple[Expr, ...]]) -> bool:
    """Whether neighbours along an iterator, such as the depth, lie side by side."""
    return runs_along(access, shapes[access.tensor], iterator, expr.domain[iterator])
