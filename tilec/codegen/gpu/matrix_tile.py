"""Tiles that a unit of matrices computes: fragments out of memory, instructions, sums in registers (L21, L24)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tilec.codegen.gpu.axes import Axis, axis, axis_ranges, loop, loops
from tilec.codegen.gpu.c_text import literal, value_type
from tilec.codegen.gpu.fragments import Fragment, Part, load_fragment
from tilec.codegen.gpu.kernel_state import KernelState, with_ranges
from tilec.codegen.gpu.lane_tile import LaneTile
from tilec.codegen.gpu.scalar_text import loaded, stored
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, Var
from tilec.ir.matrix_units import MatrixProduct, MatrixUnit, Span

UNROLLED = 4
"""Steps along the depth of a product that are unrolled at most, so that fragments are loaded while others multiply."""


@dataclass(frozen=True, slots=True)
class _Sums:
    """The sums of a lane: an array of instructions down, across, then the elements of one."""

    name: str
    down: int
    across: int
    rows: int
    columns: int

    @property
    def each(self) -> int:
        """Sums of a lane in one instruction."""
        return self.rows * self.columns

    def element(self, row: Expr, column: Expr) -> Expr:
        """The place of the sum in some slots of a lane along rows and columns."""
        instruction = _sum(_times(_over(row, self.rows), self.across), _over(column, self.columns))
        inside = _sum(_times(_rest(row, self.rows), self.columns), _rest(column, self.columns))
        return _sum(_times(instruction, self.each), inside)


def multiply(one: LaneTile, unit: MatrixUnit, product: MatrixProduct) -> None:
    """A tile of products of matrices."""
    state = one.state
    rows, columns = (_axis_of(one, name) for name in (product.rows, product.columns))
    around = tuple(each for each in one.spatial if each not in (rows, columns))
    inner_rows, inner_columns = (_slots(n, s) for n, s in zip((unit.rows, unit.columns), unit.sums, strict=True))
    down, across = -(-_count(rows) // inner_rows), -(-_count(columns) // inner_columns)
    with state.nested(loops(state, around, one.ranges, unroll=one.in_registers)):
        sums = _Sums(state.names.fresh("acc"), down, across, inner_rows, inner_columns)
        state.lines.add(f"{value_type(unit.accumulator)} {sums.name}[{down * across * sums.each}];")
        _begin(one, sums, rows, columns, unit)
        _steps(one, sums, (*around, rows, columns), unit, product)
        with _each_sum(one, rows, columns):
            state.lines.add(_put(one, _text(one, sums, rows, columns)))


def _axis_of(one: LaneTile, name: str) -> Axis:
    return next(each for each in one.spatial if each.name == name)


def _count(of: Axis) -> int:
    """Slots of a lane along an axis."""
    assert isinstance(of.outer[1], Const)
    return int(of.outer[1].value) * of.inner[1]


def _slots(extent: int, span: Span) -> int:
    """Elements of a lane along an axis of one instruction."""
    return extent // span.lanes


def _each_sum(one: LaneTile, rows: Axis, columns: Axis) -> AbstractContextManager[None]:
    heads = loops(one.state, (rows, columns), one.ranges, unroll=True)
    inside = [each.inside for each in one.spatial if each.inside is not None]
    return one.state.nested([*heads, *([f"if ({one.state.condition(inside, one.ranges)})"] if inside else [])])


def _text(one: LaneTile, sums: _Sums, rows: Axis, columns: Axis) -> str:
    return f"{sums.name}[{one.state.text(sums.element(rows.slot, columns.slot), one.ranges)}]"


def _place(one: LaneTile) -> str:
    return one.place() if one.in_registers else f"{one.state.memory('LD', one.target)}({one.address()})"


def _put(one: LaneTile, value: str) -> str:
    if one.in_registers:
        return f"{one.place()} = {stored(value, one.target.ttype)};"
    return f"{one.state.memory('ST', one.target)}({one.address()}, {stored(value, one.target.ttype)});"


def _begin(one: LaneTile, sums: _Sums, rows: Axis, columns: Axis, unit: MatrixUnit) -> None:
    """Sums begin at zero, or at what is there when the tile accumulates."""
    state, zero = one.state, literal(0, unit.accumulator)
    counter = state.names.fresh("e")
    total = sums.down * sums.across * sums.each
    with state.nested([f"#pragma unroll\nfor (int {counter} = 0; {counter} < {total}; ++{counter})"]):
        state.lines.add(f"{sums.name}[{counter}] = {zero};")
    if one.tile.accumulate:
        with _each_sum(one, rows, columns):
            there = loaded(_place(one), one.target.ttype)
            state.lines.add(f"{_text(one, sums, rows, columns)} = {there};")


def _steps(one: LaneTile, sums: _Sums, spatial: Sequence[Axis], unit: MatrixUnit, product: MatrixProduct) -> None:
    """The loops over reduce iterators; in each step all fragments of rows and columns, each multiplied with each."""
    state = one.state
    box = {name: (lo, hi) for name, lo, hi in one.tile.box}
    reduce = tuple(
        axis(state, name, *box[name], one.ranges, None, fixed=False)
        for name in one.tile.expr.reduce
        if name != product.depth
    )
    lo, hi = box[product.depth]
    width = simplify(Binary("-", hi, lo), one.ranges)
    step = state.names.fresh(f"{state.names[product.depth]}_s")
    state.names.assign({f"#{step}": step})
    count = simplify(Binary("//", Binary("+", width, Const(unit.depth - 1)), Const(unit.depth)), one.ranges)
    at = Const(0) if count == Const(1) else Var(f"#{step}")
    ranges = with_ranges(axis_ranges(reduce, one.ranges), {f"#{step}": count})
    positions = {each.name: each.position for each in (*spatial, *reduce)}
    depth = Part(product.depth, lo, width, unit.depth, _times(at, unit.depth))
    few = isinstance(count, Const) and int(count.value) <= UNROLLED
    heads = [*loops(state, reduce, ranges, unroll=False), loop(state, f"#{step}", count, ranges, unroll=few)]
    with state.nested([head for head in heads if head]):
        fragments = []
        for body, name, extent, number, spans, factor in (
            (product.left, product.rows, unit.rows, sums.down, unit.left, 0),
            (product.right, product.columns, unit.columns, sums.across, (unit.right[1], unit.right[0]), 1),
        ):
            low, high = box[name]
            across = Part(name, low, simplify(Binary("-", high, low), one.ranges), extent, Const(0))
            fragment = Fragment(body, unit.inputs[factor], across, depth, spans[0], spans[1], number, "ab"[factor])
            fragments.append(load_fragment(one, fragment, positions, ranges))
        _multiply_all(state, sums, unit, fragments)


def _multiply_all(state: KernelState, sums: _Sums, unit: MatrixUnit, fragments: Sequence[tuple[str, int]]) -> None:
    """Each fragment of rows with each of columns."""
    (left, left_words), (right, right_words) = fragments
    i, j = state.names.fresh("i"), state.names.fresh("j")
    heads = [
        f"#pragma unroll\nfor (int {name} = 0; {name} < {count}; ++{name})"
        for name, count in ((i, sums.down), (j, sums.across))
    ]
    with state.nested(heads):
        place = f"{sums.name} + ({i} * {sums.across} + {j}) * {sums.each}"
        name = f"t_{unit.name.replace('.', '_')}"
        state.lines.add(f"{name}({place}, {left} + {i} * {left_words}, {right} + {j} * {right_words});")


def _times(a: Expr, n: int) -> Expr:
    return simplify(Binary("*", a, Const(n)))


def _sum(a: Expr, b: Expr) -> Expr:
    return Binary("+", a, b)


def _over(a: Expr, n: int) -> Expr:
    return Binary("//", a, Const(n))


def _rest(a: Expr, n: int) -> Expr:
    return Binary("%", a, Const(n))
