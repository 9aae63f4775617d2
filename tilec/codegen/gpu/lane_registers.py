"""Registers that the lanes of a kernel need so that nothing spills."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tilec.codegen.gpu.kernel_state import array_shape
from tilec.codegen.gpu.lanes import LaneMaps
from tilec.codegen.gpu.target import WORD
from tilec.ir.expr import accesses, variables
from tilec.ir.lifetimes import statements
from tilec.ir.program import Allocate, Buffer, ComputeTile, Program
from tilec.spec.machine_costs import GpuCosts

FREE = 64 * WORD
"""Bytes of registers that a lane may have whatever its tiles are: half of a core's units are busy with them."""


def threads_with(registers: int, each: int, lanes: int) -> int:
    """The most threads of `each` bytes for which a core's `registers` suffice, an equal share in each of its parts."""
    parts, warp = GpuCosts().schedulers, max(32, lanes)
    return registers // parts // (each * warp) * parts * warp


def registers_of(program: Program, maps: LaneMaps) -> int:
    """Bytes of registers of a lane of a program: those of the tile that needs most."""
    inside = list(statements(program.body))
    private = {s.buffer.name: s.buffer for s in inside if isinstance(s, Allocate) and s.buffer.name in maps.buffers}
    tiles = (s for s in inside if isinstance(s, ComputeTile) and s.target in private)
    return WORD * max((_words(tile, private, maps) for tile in tiles), default=GpuCosts().beside_points)


def _words(tile: ComputeTile, private: Mapping[str, Buffer], maps: LaneMaps) -> int:
    """Registers of a lane for a tile: sums, whose operands come in blocks, or points, whose operands come ahead."""
    costs, shape = GpuCosts(), array_shape(maps, private[tile.target])
    if tile.expr.reduce:
        return prod(shape) + costs.beside_sums
    slots, read = dict(zip(tile.expr.spatial, shape, strict=True)), dict(tile.operands)
    held = {
        access.tensor: prod(slots[i] for i in slots if any(i in variables(each) for each in access.index))
        for access in accesses(tile.expr)
        if read.get(access.tensor) not in private
    }
    held |= {t: prod(array_shape(maps, private[name])) for t, name in read.items() if name in private}
    return max(prod(shape), sum(held.values())) + costs.beside_points
