"""Tiles that warpgroups compute: instructions that read both factors in shared memory, asynchronously (wgmma, L21).

t_warpgroup_fence(acc);                          sums are those that instructions begin with
for (k ..) t_wgmma_..(acc, t_matrix(..), t_matrix(..));
t_commit_products();
..                                               loads of a later iteration begin
t_wait_products(acc);                            all have read their factors and written their sums
"""

from __future__ import annotations

from collections.abc import Callable

from tilec.codegen.gpu.fragments import Described
from tilec.codegen.gpu.kernel_ir import MatrixTile
from tilec.codegen.gpu.print.lane_tile import LaneTile
from tilec.codegen.gpu.print.loop_text import loops
from tilec.codegen.gpu.print.matrix_sums import along_depth, around_product, begin_sums, declare_sums, put_sums
from tilec.codegen.gpu.print.warpgroup_instructions import WarpgroupInstruction
from tilec.ir.expr import Binary, Const
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.storage import panel_stride
from tilec.ir.types import TTYPES


def multiply_by_warpgroups(one: LaneTile, matrix: MatrixTile, meanwhile: Callable[[], None]) -> None:
    """A tile of products of matrices in shared memory; `meanwhile` prints what begins while they are in flight."""
    state, (left, right) = one.state, matrix.factors
    assert isinstance(left, Described)
    assert isinstance(right, Described)
    with state.nested(loops(state, around_product(one, matrix.product), one.ranges, unroll=one.in_registers)):
        sums = declare_sums(one, matrix)
        columns = matrix.across * sums.columns * matrix.unit.sums[1].lanes
        instruction = WarpgroupInstruction(matrix.unit, columns, (left.across, right.across))
        state.functions[instruction.name] = instruction.text
        begin_sums(one, sums, matrix.unit)
        state.lines.add(f"t_warpgroup_fence({sums.name});")
        steps = along_depth(one, matrix, unroll=True, constant=True)
        with state.nested(steps.heads):
            a, b = (_descriptor(one, factor, steps.ranges) for factor in (left, right))
            state.lines.add(f"{instruction.name}({sums.name}, {a}, {b});")
        state.lines.add("t_commit_products();")
        meanwhile()
        state.lines.add(f"t_wait_products({sums.name});")
        put_sums(one, sums)


def _descriptor(one: LaneTile, factor: Described, ranges: KnownRanges) -> str:
    """The descriptor of a factor of one instruction."""
    state, buffer = one.state, factor.buffer
    at = state.flat(buffer, factor.index, ranges)
    first = state.names[buffer.name] + ("" if at == Const(0) else f" + {state.text(at, ranges)}")
    size = TTYPES[buffer.ttype].bits // 8
    panels = Binary("*", panel_stride(buffer), Const(size)) if factor.across else Const(0)
    return f"t_matrix({first}, {buffer.swizzle}, {state.text(panels, ranges)})"
