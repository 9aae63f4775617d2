"""Sums of a tile of products in registers: as instructions leave them, from and to where the tile has its results."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from tilec.codegen.gpu.axes import Axis, loops
from tilec.codegen.gpu.c_text import literal, value_type
from tilec.codegen.gpu.lane_tile import LaneTile
from tilec.codegen.gpu.scalar_text import loaded, stored
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr
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


def declare_sums(one: LaneTile, unit: MatrixUnit, product: MatrixProduct, block: tuple[int, int]) -> Sums:
    """The sums of a tile, in blocks of so many rows and columns of the tile."""
    vertical, horizontal = (_axis_of(one, name) for name in (product.rows, product.columns))
    rows, columns = (extent // span.lanes for extent, span in zip(block, unit.sums, strict=True))
    down, across = -(-_count(vertical) // rows), -(-_count(horizontal) // columns)
    sums = Sums(one.state.names.fresh("acc"), vertical, horizontal, down, across, rows, columns)
    one.state.lines.add(f"{value_type(unit.accumulator)} {sums.name}[{sums.count}];")
    return sums


def around_product(one: LaneTile, product: MatrixProduct) -> tuple[Axis, ...]:
    """The spatial axes of a tile that are neither rows nor columns."""
    return tuple(each for each in one.spatial if each.name not in (product.rows, product.columns))


def begin_sums(one: LaneTile, sums: Sums, unit: MatrixUnit) -> None:
    """Sums begin at zero, or at what is there when the tile accumulates."""
    state, zero = one.state, literal(0, unit.accumulator)
    counter = state.names.fresh("e")
    with state.nested([f"#pragma unroll\nfor (int {counter} = 0; {counter} < {sums.count}; ++{counter})"]):
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


def _axis_of(one: LaneTile, name: str) -> Axis:
    return next(each for each in one.spatial if each.name == name)


def _count(of: Axis) -> int:
    """Slots of a lane along an axis."""
    assert isinstance(of.outer[1], Const)
    return int(of.outer[1].value) * of.inner[1]


def _each_sum(one: LaneTile, sums: Sums) -> AbstractContextManager[None]:
    heads = loops(one.state, (sums.vertical, sums.horizontal), one.ranges, unroll=True)
    inside = [each.inside for each in one.spatial if each.inside is not None]
    return one.state.nested([*heads, *([f"if ({one.state.condition(inside, one.ranges)})"] if inside else [])])


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
