"""Factors that groups of warps read in shared memory: where each begins, as far as instructions take it (wgmma, L21).

The tile of a warp has the rows of one instruction that are the warp's, its neighbours in the group have those beside.
Factors are described as they are stored: swizzled rows in panels, whose pattern is one of eight rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from tilec.codegen.gpu.fragments import Described
from tilec.codegen.gpu.index_facts import is_multiple
from tilec.codegen.gpu.kernel_ir import KernelIR, MatrixTile, Tile
from tilec.errors import UnsupportedError
from tilec.ir.algebra import linear_form, simplify
from tilec.ir.expr import Access, Binary, Const, Expr, Var, constant_value, substitute, variables
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.matrix_units import reads_in_memory
from tilec.ir.storage import panel_width, row_dimension, strides

ROWS = 8
"""Rows that make up the pattern of a panel."""


def described_factors(
    kernel: KernelIR, tile: Tile, matrix: MatrixTile, at: Expr, ranges: KnownRanges
) -> tuple[Described, ...]:
    """The factors of a tile `at` so far along the depth. Raises UnsupportedError for what instructions do not read."""
    product = matrix.product
    factors = _Factors(kernel, tile, matrix, ranges)
    if not reads_in_memory(product):
        factors.refuse("products of two tensors along their last dimensions")
    sides = [(product.left, product.rows), (product.right, product.columns)]
    stored = [factors.stored(body, along) for body, along in sides]
    factors.check_extents()
    begin = {product.rows: factors.first_row(), product.columns: factors.box[product.columns][0]}
    positions = {each.name: each.position for each in tile.axes} | begin
    positions[product.depth] = Binary("+", factors.box[product.depth][0], at)
    for (_, along), each in zip(sides, stored, strict=True):
        factors.check_begin(each, along, begin)
    return tuple(replace(e, index=tuple(substitute(i, positions) for i in e.access.index)) for e in stored)


@dataclass(frozen=True)
class _Factors:
    """The factors of a tile of a kernel."""

    kernel: KernelIR
    tile: Tile
    matrix: MatrixTile
    ranges: KnownRanges

    @property
    def box(self) -> dict[str, tuple[Expr, Expr]]:
        """Iterator -> the ends of the tile along it."""
        return {name: (lo, hi) for name, lo, hi in self.tile.box}

    def check_extents(self) -> None:
        """Refuse what is not made of whole instructions."""
        unit, product = self.matrix.unit, self.matrix.product
        rows, columns, depth = (self._width(each) for each in (product.rows, product.columns, product.depth))
        count = constant_value(columns) or 0
        whole = 0 < count <= unit.most and count % unit.columns == 0 and is_multiple(depth, unit.depth, self.ranges)
        if rows != Const(unit.rows) or not whole:
            self.refuse("whole instructions")

    def _width(self, iterator: str) -> Expr:
        lo, hi = self.box[iterator]
        return simplify(Binary("-", hi, lo), self.ranges)

    def first_row(self) -> Expr:
        """The first row of the group: its warps are iterations of the innermost spread loop one after another."""
        unit, rows, loop = self.matrix.unit, self.matrix.product.rows, self.matrix.warps
        lo = self.box[rows][0]
        if loop is None:
            self.refuse("tiles of a unit each")
        steps = linear_form(lo, self.ranges)[0].get(Var(loop.variable), 0)
        others = {name for i, (begin, _) in self.box.items() if i != rows for name in variables(begin)}
        extent = constant_value(simplify(loop.extent, self.ranges)) or 1
        if steps != unit.rows or loop.variable in others or extent % unit.warps:
            self.refuse(f"rows of {unit.warps} warps beside one another")
        whole = Binary("*", Binary("//", Var(loop.variable), Const(unit.warps)), Const(unit.warps))
        return substitute(lo, {loop.variable: whole})

    def stored(self, body: Expr, along: str) -> Described:
        """A factor whose rows (or columns) lie `along` an iterator, as it is stored."""
        assert isinstance(body, Access)
        buffer, depth = dict(self.tile.operands)[body.tensor], self.matrix.product.depth
        if not buffer.swizzle or buffer.offset is None:
            self.refuse(f"{body.tensor} in swizzled rows")
        dims = {name: d for d, index in enumerate(body.index) for name in (along, depth) if index == Var(name)}
        row = row_dimension(buffer)
        across = dims[along] == row
        other = dims[depth if across else along]
        if row not in dims.values() or strides(buffer)[other] != Const(panel_width(buffer)):
            self.refuse(f"rows of {body.tensor} one after another")
        return Described(body, buffer, across, ())

    def check_begin(self, factor: Described, along: str, begin: Mapping[str, Expr]) -> None:
        """Refuse a factor that does not begin with a pattern of pieces, or whose steps do not."""
        access, buffer = factor.access, factor.buffer
        starts = {
            along: panel_width(buffer) if factor.across else ROWS,
            self.matrix.product.depth: self.matrix.unit.depth,
        }
        for index, lo in zip(access.index, buffer.lo, strict=True):
            name = index.name if isinstance(index, Var) else ""
            far = Binary("-", begin.get(name, self.box[name][0]), lo) if name in starts else Const(0)
            if not is_multiple(simplify(far, self.ranges), starts.get(name, 1), self.ranges):
                self.refuse(f"{access.tensor} from the beginning of a panel on")

    def refuse(self, what: str) -> NoReturn:
        """Say what the unit takes, and this is not."""
        raise UnsupportedError(
            f"kernel {self.kernel.name} computes {self.tile.target.name} by {self.matrix.unit.name}, "
            f"which takes {what}",
            hint="Leave the unit of this node out of the plan.",
        )
