"""Tiles that a unit of matrices computes: fragments out of memory, instructions, sums in registers (L21, L24)."""

from __future__ import annotations

from tilec.codegen.gpu.fragments import Fragment
from tilec.codegen.gpu.kernel_ir import MatrixTile
from tilec.codegen.gpu.print.fragment_text import load_fragment
from tilec.codegen.gpu.print.lane_tile import LaneTile
from tilec.codegen.gpu.print.loop_text import counted, loops
from tilec.codegen.gpu.print.matrix_sums import Sums, along_depth, around_product, begin_sums, declare_sums, put_sums


def multiply(one: LaneTile, matrix: MatrixTile) -> None:
    """A tile of products of matrices."""
    around = around_product(one, matrix.product)
    with one.state.nested(loops(one.state, around, one.ranges, unroll=one.in_registers)):
        sums = declare_sums(one, matrix)
        begin_sums(one, sums, matrix.unit)
        _steps(one, sums, matrix)
        put_sums(one, sums)


def _steps(one: LaneTile, sums: Sums, matrix: MatrixTile) -> None:
    """The loops over reduce iterators; in each step all fragments of rows and columns, each multiplied with each."""
    left, right = matrix.factors
    assert isinstance(left, Fragment)
    assert isinstance(right, Fragment)
    steps = along_depth(one, matrix, unroll=False, constant="own" in (left.load, right.load))
    state = one.state
    with state.nested(steps.heads):
        rows, columns = load_fragment(one, left, "a", steps.ranges), load_fragment(one, right, "b", steps.ranges)
        i, j = state.names.fresh("i"), state.names.fresh("j")
        with state.nested([counted(i, sums.down), counted(j, sums.across)]):
            place = f"{sums.name} + ({i} * {sums.across} + {j}) * {sums.each}"
            name = f"t_{matrix.unit.name.replace('.', '_')}"
            state.lines.add(f"{name}({place}, {rows} + {i} * {left.words}, {columns} + {j} * {right.words});")
