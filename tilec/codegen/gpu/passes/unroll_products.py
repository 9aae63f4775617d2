"""Products of matrices in instructions: how many of them a tile has along its sides, and steps that are unrolled."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tilec.codegen.gpu.decisions import Decisions
from tilec.codegen.gpu.fragments import sums_of_instruction
from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import Axis, KernelIR, MatrixTile, Step, Tile, Unroll
from tilec.codegen.gpu.rewrite import rewritten
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, accesses, constant_value
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.types import TTYPES
from tilec.spec.machine_costs import GpuCosts

UNROLLED = 4
"""Steps along the depth of a product that are unrolled at most, so that fragments are loaded while others multiply."""

REGISTERS = 255
"""Registers of a thread (CUDA C++ Programming Guide, Compute Capabilities)."""


def unroll_products(kernel: KernelIR, context: KernelContext) -> KernelIR:
    """The kernel with the instructions of its products."""

    def unrolled(step: Step, known: KnownRanges) -> tuple[Step, ...]:
        if isinstance(step, Tile) and step.matrix is not None:
            step = replace(step, matrix=_instructions(kernel, step, step.matrix, known, context.decisions))
        return (step,)

    return rewritten(kernel, unrolled, context.ranges)


def _instructions(
    kernel: KernelIR, tile: Tile, matrix: MatrixTile, ranges: KnownRanges, decisions: Decisions | None
) -> MatrixTile:
    unit, axes = matrix.unit, {each.name: each for each in tile.axes}
    rows, columns = sums_of_instruction(unit)
    down = -(-_slots(axes[matrix.product.rows]) // rows)
    across = -(-_slots(axes[matrix.product.columns]) // columns)
    matrix = replace(matrix, down=down, across=across)
    held = dict(tile.operands)
    private = any(kernel.is_private(held[each.tensor]) for each in accesses(tile.expr))
    if private or unit.reads_memory:
        return matrix
    lo, hi = next((lo, hi) for name, lo, hi in tile.box if name == matrix.product.depth)
    width = Binary("+", Binary("-", hi, lo), Const(unit.depth - 1))
    steps = constant_value(simplify(Binary("//", width, Const(unit.depth)), ranges))
    if decisions is None:
        return replace(matrix, unroll=_unroll(steps, matrix, rows * columns, kernel.launched.lanes))
    unroll, rest = divmod(decisions.points(tile.expr.tensor).get(matrix.product.depth, 0), unit.depth)
    return replace(matrix, unroll=unroll if unroll and steps and not rest and steps % unroll == 0 else None)


def _slots(axis: Axis) -> int:
    """Points of a lane along an axis."""
    return (constant_value(axis.outer[1]) or 0) * axis.inner[1]


def _unroll(steps: int | None, matrix: MatrixTile, sums: int, lanes: int) -> Unroll:
    """Steps that are unrolled: a divisor of their number, the largest for whose fragments there are registers."""
    if steps is None or not 1 < steps <= UNROLLED:
        return None
    unit = matrix.unit
    bits = [TTYPES[each].bits for each in unit.inputs]
    sides = (unit.rows * matrix.down * bits[0], unit.columns * matrix.across * bits[1])
    words = max(1, sum(unit.depth * side // 32 // lanes for side in sides))
    left = REGISTERS - prod((matrix.down, matrix.across, sums)) - GpuCosts().beside_points
    return max(n for n in range(1, steps + 1) if steps % n == 0 and (n == 1 or n * words <= left))
