"""Tiles that a unit of matrices computes: fragments out of memory, instructions, sums in registers (L21, L24)."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.codegen.gpu.fragments import Fragment, Part, is_held, load_fragment
from tilec.codegen.gpu.kernel_ir import Axis, MatrixTile
from tilec.codegen.gpu.kernel_state import KernelState
from tilec.codegen.gpu.lane_tile import LaneTile
from tilec.codegen.gpu.loop_text import counted, loops
from tilec.codegen.gpu.matrix_sums import Sums, along_depth, around_product, begin_sums, declare_sums, put_sums
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const
from tilec.ir.matrix_units import MatrixUnit


def multiply(one: LaneTile, matrix: MatrixTile) -> None:
    """A tile of products of matrices."""
    around = around_product(one, matrix.product)
    with one.state.nested(loops(one.state, around, one.ranges, unroll=one.in_registers)):
        sums = declare_sums(one, matrix)
        begin_sums(one, sums, matrix.unit)
        _steps(one, sums, (*around, sums.vertical, sums.horizontal), matrix)
        put_sums(one, sums)


def _steps(one: LaneTile, sums: Sums, spatial: Sequence[Axis], matrix: MatrixTile) -> None:
    """The loops over reduce iterators; in each step all fragments of rows and columns, each multiplied with each."""
    state, unit, product = one.state, matrix.unit, matrix.product
    assert unit.left is not None
    assert unit.right is not None
    box = {name: (lo, hi) for name, lo, hi in one.tile.box}
    held = any(is_held(one, body) for body in (product.left, product.right))
    steps = along_depth(one, matrix, unroll=False, constant=held)
    positions = {each.name: each.position for each in spatial} | {**steps.positions}
    lo, hi = box[product.depth]
    depth = Part(product.depth, lo, simplify(Binary("-", hi, lo), one.ranges), unit.depth, steps.at)
    with state.nested(steps.heads):
        fragments = []
        for body, name, extent, number, spans, factor in (
            (product.left, product.rows, unit.rows, sums.down, unit.left, 0),
            (product.right, product.columns, unit.columns, sums.across, (unit.right[1], unit.right[0]), 1),
        ):
            low, high = box[name]
            across = Part(name, low, simplify(Binary("-", high, low), one.ranges), extent, Const(0))
            fragment = Fragment(body, unit.inputs[factor], across, depth, spans[0], spans[1], number, "ab"[factor])
            fragments.append(load_fragment(one, fragment, positions, steps.ranges))
        _multiply_all(state, sums, unit, fragments)


def _multiply_all(state: KernelState, sums: Sums, unit: MatrixUnit, fragments: Sequence[tuple[str, int]]) -> None:
    """Each fragment of rows with each of columns."""
    (left, left_words), (right, right_words) = fragments
    i, j = state.names.fresh("i"), state.names.fresh("j")
    with state.nested([counted(i, sums.down), counted(j, sums.across)]):
        place = f"{sums.name} + ({i} * {sums.across} + {j}) * {sums.each}"
        name = f"t_{unit.name.replace('.', '_')}"
        state.lines.add(f"{name}({place}, {left} + {i} * {left_words}, {right} + {j} * {right_words});")
