"""Which tiles units of matrices compute, as products of which rows, columns and depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import KernelIR, MatrixTile, Nested, Spread, Step, Tile, Units
from tilec.errors import UnsupportedError
from tilec.ir.matrix_units import MatrixUnit, matrix_product


def matrix_units(kernel: KernelIR, context: KernelContext) -> KernelIR:
    """The kernel with the products of its tiles on units. Raises UnsupportedError for what these do not compute."""
    return replace(kernel, body=_steps(kernel, kernel.body, context.units if context.lanes > 1 else {}, None))


def _steps(
    kernel: KernelIR, body: Sequence[Step], units: Mapping[str, MatrixUnit], warps: Spread | None
) -> tuple[Step, ...]:
    result: list[Step] = []
    for step in body:
        if isinstance(step, Nested):
            inner = step.nest[-1] if isinstance(step, Units) else warps
            step = replace(step, body=_steps(kernel, step.body, units, inner))
        elif isinstance(step, Tile) and step.unit in units:
            step = replace(step, matrix=_matrix_tile(kernel, step, units[step.unit], warps))
        result.append(step)
    return tuple(result)


def _matrix_tile(kernel: KernelIR, tile: Tile, unit: MatrixUnit, warps: Spread | None) -> MatrixTile:
    product = matrix_product(tile.expr, {tensor: buffer.ttype for tensor, buffer in tile.operands}, unit)
    private = any(kernel.is_private(buffer) for _, buffer in tile.operands)
    if product is None or (private and unit.reads_memory):
        raise UnsupportedError(
            f"kernel {kernel.name} computes {tile.target.name} by {unit.name}, which takes products of matrices of "
            f"{' and '.join(unit.inputs)}{' in memory' if unit.reads_memory else ''}",
            hint="Leave the unit of this node out of the plan.",
        )
    return MatrixTile(unit, product, warps)
