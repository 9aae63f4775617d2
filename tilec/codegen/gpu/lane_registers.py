"""Registers that the lanes of a kernel need so that nothing spills."""

from __future__ import annotations

from math import prod

from tilec.codegen.gpu.kernel_ir import KernelIR, Tile, tiles
from tilec.codegen.gpu.lanes import array_shape
from tilec.codegen.gpu.target import WORD
from tilec.ir.expr import accesses, variables
from tilec.spec.machine_costs import GpuCosts

FREE = 64 * WORD
"""Bytes of registers that a lane may have whatever its tiles are: half of a core's units are busy with them."""


def threads_with(registers: int, each: int, lanes: int) -> int:
    """The most threads of `each` bytes for which a core's `registers` suffice, an equal share in each of its parts."""
    parts, warp = GpuCosts().schedulers, max(32, lanes)
    return registers // parts // (each * warp) * parts * warp


def registers_of(kernel: KernelIR) -> int:
    """Bytes of registers of a lane of a kernel: those of the tile that needs most."""
    private = (tile for tile in tiles(kernel.body) if kernel.is_private(tile.target))
    return WORD * max((_words(kernel, tile) for tile in private), default=GpuCosts().beside_points)


def _words(kernel: KernelIR, tile: Tile) -> int:
    """Registers of a lane for a tile: sums, whose operands come in blocks, or points, whose operands come ahead."""
    costs, shape = GpuCosts(), array_shape(kernel.held[tile.target.name], tile.target)
    if tile.expr.reduce:
        return prod(shape) + costs.beside_sums
    slots, read = dict(zip(tile.expr.spatial, shape, strict=True)), dict(tile.operands)
    held = {
        access.tensor: prod(slots[i] for i in slots if any(i in variables(each) for each in access.index))
        for access in accesses(tile.expr)
        if access.tensor not in read or not kernel.is_private(read[access.tensor])
    }
    own = {t: array_shape(kernel.held[b.name], b) for t, b in read.items() if kernel.is_private(b)}
    held |= {tensor: prod(extents) for tensor, extents in own.items()}
    return max(prod(shape), sum(held.values())) + costs.beside_points
