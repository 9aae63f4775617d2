"""A part of what lies ahead, fetched in every round of the loops that pass meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tvm import tirx
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.codegen.cpu.emit.indices import Indices, divided
from tilec.codegen.cpu.emit.memory_access import Memories, stored
from tilec.codegen.cpu.emit.vector_ops import PrimExpr, int64
from tilec.codegen.cpu.kernel_ir import Prefetch
from tilec.codegen.cpu.passes.nontemporal_stores import whole
from tilec.spec.machine_costs import CpuCosts

_NEAR, _DATA = 2, 1
"""Arguments of LLVM's `prefetch`: into a core's second cache, data."""


def fetch(
    ahead: Prefetch, rounds: Sequence[tuple[PrimExpr, int]], memories: Memories, indices: Indices, costs: CpuCosts
) -> None:
    """Print the fetch of a part of what lies ahead, another one in every round of the loops.

    `rounds` are the loops of the tile itself, outermost first: which round it is, and how many there are.
    """
    around = [(tirx.Sub(indices.variables[name], int64(low)), count) for name, low, count in ahead.loops]
    number = int64(0)
    for each, count in (*around, *rounds):
        number = tirx.Add(tirx.Mul(number, int64(count)), each)
    part = -(-ahead.run * ahead.count // prod(count for _, count in (*around, *rounds)))
    line = whole(stored(memories.ttypes[ahead.memory]), costs.line)
    if part > costs.fetch_lines * line:
        return
    hints = [tirx.IntImm("int32", value) for value in (ahead.written, _NEAR, _DATA)]
    for offset in range(0, part, line):
        at: PrimExpr = tirx.Add(tirx.Mul(number, int64(part)), int64(offset))
        if ahead.count > 1:
            run, within = (divided(op, at, ahead.run, 1) for op in ("//", "%"))
            at = tirx.Add(tirx.Mul(run, int64(ahead.pitch)), within)
        address = tirx.address_of(memories.buffers[ahead.memory][tirx.Add(indices.get(ahead.first), at)])
        I.evaluate(tirx.call_llvm_intrin("void", "llvm.prefetch", address, *hints))
