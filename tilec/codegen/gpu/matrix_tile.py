"""Tiles that a unit of matrices computes: fragments out of memory, instructions, sums in registers (L21, L24)."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.codegen.gpu.axes import Axis, axis, axis_ranges, loop, loops
from tilec.codegen.gpu.fragments import Fragment, Part, is_held, load_fragment
from tilec.codegen.gpu.kernel_state import KernelState
from tilec.codegen.gpu.lane_tile import LaneTile
from tilec.codegen.gpu.matrix_sums import Sums, around_product, begin_sums, declare_sums, put_sums
from tilec.codegen.gpu.ranges import with_ranges
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, Var
from tilec.ir.matrix_units import MatrixProduct, MatrixUnit
from tilec.ir.types import TTYPES
from tilec.spec.machine_costs import GpuCosts

UNROLLED = 4
"""Steps along the depth of a product that are unrolled at most, so that fragments are loaded while others multiply."""


REGISTERS = 255
"""Registers of a thread (CUDA C++ Programming Guide, Compute Capabilities)."""


def multiply(one: LaneTile, unit: MatrixUnit, product: MatrixProduct) -> None:
    """A tile of products of matrices."""
    around = around_product(one, product)
    with one.state.nested(loops(one.state, around, one.ranges, unroll=one.in_registers)):
        sums = declare_sums(one, unit, product, (unit.rows, unit.columns))
        begin_sums(one, sums, unit)
        _steps(one, sums, (*around, sums.vertical, sums.horizontal), unit, product)
        put_sums(one, sums)


def _steps(one: LaneTile, sums: Sums, spatial: Sequence[Axis], unit: MatrixUnit, product: MatrixProduct) -> None:
    """The loops over reduce iterators; in each step all fragments of rows and columns, each multiplied with each."""
    state = one.state
    assert unit.left is not None
    assert unit.right is not None
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
    held = any(is_held(one, body) for body in (product.left, product.right))
    head = loop(state, f"#{step}", count, ranges, unroll=held)
    if head and not held and isinstance(count, Const) and int(count.value) <= UNROLLED:
        unrolled = _unrolled(int(count.value), sums, unit, state.lanes)
        head = f"#pragma unroll{'' if unrolled == count.value else f' {unrolled}'}\n{head}"
    heads = [*loops(state, reduce, ranges, unroll=False), head]
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


def _unrolled(count: int, sums: Sums, unit: MatrixUnit, lanes: int) -> int:
    """Steps that are unrolled: a divisor of their number, the largest for whose fragments there are registers."""
    bits = [TTYPES[each].bits for each in unit.inputs]
    sides = (unit.rows * sums.down * bits[0], unit.columns * sums.across * bits[1])
    words = max(1, sum(unit.depth * side // 32 // lanes for side in sides))
    left = REGISTERS - sums.count - GpuCosts().beside_points
    return max(n for n in range(1, count + 1) if count % n == 0 and (n == 1 or n * words <= left))


def _multiply_all(state: KernelState, sums: Sums, unit: MatrixUnit, fragments: Sequence[tuple[str, int]]) -> None:
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
