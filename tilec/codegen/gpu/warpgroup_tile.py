"""Tiles that warpgroups compute: instructions that read both factors in shared memory, asynchronously (wgmma, L21).

    t_warpgroup_fence(acc);                          sums are those that instructions begin with
    for (k ..) t_wgmma_..(acc, t_matrix(..), t_matrix(..));
    t_commit_products();
    ..                                               loads of a later iteration begin
    t_wait_products(acc);                            all have read their factors and written their sums

The tile of a warp has the rows of one instruction that are the warp's, its neighbours in the group have those beside.
Factors are described as they are stored: swizzled rows in panels, whose pattern is one of eight rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from tilec.codegen.gpu.index_text import is_multiple
from tilec.codegen.gpu.kernel_ir import MatrixTile, Spread
from tilec.codegen.gpu.lane_tile import LaneTile
from tilec.codegen.gpu.loop_text import loops
from tilec.codegen.gpu.matrix_sums import along_depth, around_product, begin_sums, declare_sums, put_sums
from tilec.codegen.gpu.warpgroup_instructions import WarpgroupInstruction
from tilec.errors import UnsupportedError
from tilec.ir.algebra import linear_form, simplify
from tilec.ir.expr import Access, Binary, Const, Expr, Var, constant_value, substitute, variables
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.matrix_units import MatrixProduct, MatrixUnit, reads_in_memory
from tilec.ir.program import Buffer
from tilec.ir.storage import panel_stride, panel_width, row_dimension, strides
from tilec.ir.types import TTYPES

ROWS = 8
"""Rows that make up the pattern of a panel."""


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor in shared memory: what is read of it, the iterator of its rows (or columns), and whether neighbours
    along that lie side by side, and not those along the depth."""

    access: Access
    buffer: Buffer
    along: str
    across: bool


def multiply_by_warpgroups(one: LaneTile, matrix: MatrixTile, meanwhile: Callable[[], None]) -> None:
    """A tile of products of matrices in shared memory; `meanwhile` prints what begins while they are in flight. Raises
    UnsupportedError for what instructions do not read."""
    state, unit, product = one.state, matrix.unit, matrix.product
    tile = _Tile(one, unit, product, matrix.warps)
    instruction = tile.instruction
    state.functions[instruction.name] = instruction.text
    around = around_product(one, product)
    with state.nested(loops(state, around, one.ranges, unroll=one.in_registers)):
        sums = declare_sums(one, matrix)
        begin_sums(one, sums, unit)
        state.lines.add(f"t_warpgroup_fence({sums.name});")
        steps = along_depth(one, matrix, unroll=True, constant=True)
        depth = Binary("+", tile.box[product.depth][0], steps.at)
        positions = {each.name: each.position for each in around} | {**steps.positions, **tile.begin}
        positions[product.depth] = depth
        with state.nested(steps.heads):
            left, right = (_described(one, factor, positions, steps.ranges) for factor in tile.factors)
            state.lines.add(f"{instruction.name}({sums.name}, {left}, {right});")
        state.lines.add("t_commit_products();")
        meanwhile()
        state.lines.add(f"t_wait_products({sums.name});")
        put_sums(one, sums)


class _Tile:
    """A tile as instructions compute it: its box, its factors, and where rows and columns of its group begin."""

    def __init__(self, one: LaneTile, unit: MatrixUnit, product: MatrixProduct, warps: Spread | None) -> None:
        self.one, self.unit, self.product, self.warps = one, unit, product, warps
        self.box = {name: (lo, hi) for name, lo, hi in one.tile.box}
        if not reads_in_memory(product):
            self._refuse("products of two tensors along their last dimensions")
        sides = ((product.left, product.rows), (product.right, product.columns))
        self.factors = tuple(self._factor(body, along) for body, along in sides)
        columns = constant_value(self.width(product.columns)) or 0
        if (
            self.width(product.rows) != Const(unit.rows)
            or not columns
            or columns % unit.columns
            or columns > unit.most
            or not is_multiple(self.width(product.depth), unit.depth, one.ranges)
        ):
            self._refuse("whole instructions")
        self.instruction = WarpgroupInstruction(unit, columns, (self.factors[0].across, self.factors[1].across))
        self.begin = {product.rows: self._first_row(), product.columns: self.box[product.columns][0]}
        self._check_begin()

    def width(self, iterator: str) -> Expr:
        """The width of the tile along an iterator."""
        lo, hi = self.box[iterator]
        return simplify(Binary("-", hi, lo), self.one.ranges)

    def _factor(self, body: Expr, along: str) -> _Factor:
        assert isinstance(body, Access)
        buffer = dict(self.one.tile.operands)[body.tensor]
        if not buffer.swizzle or buffer.offset is None:
            self._refuse(f"{body.tensor} in swizzled rows")
        dims = {
            name: d for d, index in enumerate(body.index) for name in (along, self.product.depth) if index == Var(name)
        }
        row = row_dimension(buffer)
        across = dims[along] == row
        other = dims[self.product.depth if across else along]
        if row not in dims.values() or strides(buffer)[other] != Const(panel_width(buffer)):
            self._refuse(f"rows of {body.tensor} one after another")
        return _Factor(body, buffer, along, across)

    def _first_row(self) -> Expr:
        """The first row of the group: its warps are iterations of the innermost spread loop one after another."""
        lo, loop = self.box[self.product.rows][0], self.warps
        if loop is None:
            self._refuse("tiles of a unit each")
        steps = linear_form(lo, self.one.ranges)[0].get(Var(loop.variable), 0)
        others = {name for i, (begin, _) in self.box.items() if i != self.product.rows for name in variables(begin)}
        extent = constant_value(simplify(loop.extent, self.one.ranges)) or 1
        if steps != self.unit.rows or loop.variable in others or extent % self.unit.warps:
            self._refuse(f"rows of {self.unit.warps} warps beside one another")
        whole = Binary("*", Binary("//", Var(loop.variable), Const(self.unit.warps)), Const(self.unit.warps))
        return substitute(lo, {loop.variable: whole})

    def _check_begin(self) -> None:
        """Refuse factors that do not begin with a pattern of pieces, or whose steps do not."""
        for each in self.factors:
            panel = panel_width(each.buffer)
            starts = {each.along: panel if each.across else ROWS, self.product.depth: self.unit.depth}
            for d, index in enumerate(each.access.index):
                name = index.name if isinstance(index, Var) else ""
                begin = self.begin.get(name, self.box[name][0]) if name in starts else Const(0)
                low = each.buffer.lo[d] if name in starts else Const(0)
                if not is_multiple(
                    simplify(Binary("-", begin, low), self.one.ranges), starts.get(name, 1), self.one.ranges
                ):
                    self._refuse(f"{each.access.tensor} from the beginning of a panel on")

    def _refuse(self, what: str) -> NoReturn:
        raise UnsupportedError(
            f"kernel {self.one.state.kernel.name} computes {self.one.target.name} by {self.unit.name}, "
            f"which takes {what}",
            hint="Leave the unit of this node out of the plan.",
        )


def _described(one: LaneTile, factor: _Factor, positions: Mapping[str, Expr], ranges: KnownRanges) -> str:
    """The descriptor of a factor of one instruction."""
    state, buffer = one.state, factor.buffer
    at = state.flat(buffer, [substitute(each, dict(positions)) for each in factor.access.index], ranges)
    first = state.names[buffer.name] + ("" if at == Const(0) else f" + {state.text(at, ranges)}")
    size = TTYPES[buffer.ttype].bits // 8
    panels = Binary("*", panel_stride(buffer), Const(size)) if factor.across else Const(0)
    return f"t_matrix({first}, {buffer.swizzle}, {state.text(panels, ranges)})"
