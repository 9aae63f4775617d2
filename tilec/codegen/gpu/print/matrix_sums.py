"""Sums of a tile of products in registers: as instructions leave them, from and to where the tile has its results."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from tilec.codegen.gpu.axes import inside
from tilec.codegen.gpu.fragments import sums_of_instruction
from tilec.codegen.gpu.kernel_ir import WHOLE, Axis, MatrixTile
from tilec.codegen.gpu.kernel_names import step_along
from tilec.codegen.gpu.print.c_text import literal, value_type
from tilec.codegen.gpu.print.lane_tile import LaneTile
from tilec.codegen.gpu.print.loop_text import bind, counted, loop, loops, pragma
from tilec.codegen.gpu.print.scalar_text import loaded, stored
from tilec.codegen.gpu.ranges import with_ranges
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.matrix_units import MatrixProduct, MatrixUnit


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of a lane along two axes of a tile: an array of blocks down, across, then the elements of one block."""

    name: str
    vertical: Axis
    horizontal: Axis
    down: int
    across: int
    rows: int
    columns: int

    @property
    def each(self) -> int:
        """Sums of a lane in one block."""
        return self.rows * self.columns

    @property
    def count(self) -> int:
        """All sums of a lane."""
        return self.down * self.across * self.each

    @property
    def element(self) -> Expr:
        """The place of the sum of a point."""
        row, column = self.vertical.slot, self.horizontal.slot
        block = Binary("+", _times(_over(row, self.rows), self.across), _over(column, self.columns))
        inside = Binary("+", _times(_rest(row, self.rows), self.columns), _rest(column, self.columns))
        return Binary("+", _times(block, self.each), inside)


def declare_sums(one: LaneTile, matrix: MatrixTile) -> Sums:
    """The sums of a tile, in blocks of those of an instruction."""
    axes = {each.name: each for each in one.spatial}
    vertical, horizontal = axes[matrix.product.rows], axes[matrix.product.columns]
    name, each = one.state.names.fresh("acc"), sums_of_instruction(matrix.unit)
    sums = Sums(name, vertical, horizontal, matrix.down, matrix.across, *each)
    one.state.lines.add(f"{value_type(matrix.unit.accumulator)} {sums.name}[{sums.count}];")
    return sums


def around_product(one: LaneTile, product: MatrixProduct) -> tuple[Axis, ...]:
    """The spatial axes of a tile that are neither rows nor columns."""
    return tuple(each for each in one.spatial if each.name not in (product.rows, product.columns))


@dataclass(frozen=True, slots=True)
class Depth:
    """The loops over the reductions of a product: their heads, and the `ranges` inside."""

    heads: tuple[str, ...]
    ranges: KnownRanges


def along_depth(one: LaneTile, matrix: MatrixTile, *, unroll: bool, constant: bool) -> Depth:
    """The steps of a product along its depth, inside the loops over other reductions, which are unrolled with `unroll`;
    with `constant` all steps are."""
    state, depth, extent = one.state, matrix.product.depth, matrix.unit.depth
    reduce = tuple(each for each in one.reduce if each.name != depth)
    bind(state, reduce)
    lo, hi = next((lo, hi) for name, lo, hi in one.tile.box if name == depth)
    step = step_along(depth).name
    state.names.assign({step: state.names.fresh(f"{state.names[depth]}_s")})
    width = Binary("+", Binary("-", hi, lo), Const(extent - 1))
    count = simplify(Binary("//", width, Const(extent)), one.ranges)
    ranges = with_ranges(one.ranges, {step: count})
    turns = loop(state, step, count, ranges, unroll=constant)
    unrolled = pragma(WHOLE if count == Const(matrix.unroll or 0) else matrix.unroll)
    heads = (*loops(state, reduce, ranges, unroll=unroll), *((f"{unrolled}{turns}",) if turns else ()))
    return Depth(heads, ranges)


def begin_sums(one: LaneTile, sums: Sums, unit: MatrixUnit) -> None:
    """Sums begin at zero, or at what is there when the tile accumulates."""
    state, zero = one.state, literal(0, unit.accumulator)
    counter = state.names.fresh("e")
    with state.nested([counted(counter, sums.count)]):
        state.lines.add(f"{sums.name}[{counter}] = {zero};")
    if one.tile.accumulate:
        with _each_sum(one, sums):
            state.lines.add(f"{_text(one, sums)} = {loaded(_place(one), one.target.ttype)};")


def put_sums(one: LaneTile, sums: Sums) -> None:
    """Sums become the results of a tile."""
    with _each_sum(one, sums):
        value = stored(_text(one, sums), one.target.ttype)
        if one.in_registers:
            one.state.lines.add(f"{one.place()} = {value};")
        else:
            one.state.lines.add(f"{one.state.memory('ST', one.target)}({one.address()}, {value});")


def _each_sum(one: LaneTile, sums: Sums) -> AbstractContextManager[None]:
    heads = loops(one.state, (sums.vertical, sums.horizontal), one.ranges, unroll=True)
    return one.state.nested([*heads, *one.state.when(inside(one.spatial), one.ranges)])


def _text(one: LaneTile, sums: Sums) -> str:
    return f"{sums.name}[{one.state.text(sums.element, one.ranges)}]"


def _place(one: LaneTile) -> str:
    return one.place() if one.in_registers else f"{one.state.memory('LD', one.target)}({one.address()})"


def _times(a: Expr, n: int) -> Expr:
    return simplify(Binary("*", a, Const(n)))


def _over(a: Expr, n: int) -> Expr:
    return Binary("//", a, Const(n))


def _rest(a: Expr, n: int) -> Expr:
    return Binary("%", a, Const(n))
