"""The memory map of a plan over time: tensors between groups by offset and lifetime in one arena (Welder, 4.2).

Offsets follow the rule by which code generation lays out the arena: best fit by lifetime, largest first.
"""

from __future__ import annotations

from typing import Any

from tilec.codegen.memory_plan import Life, plan_memory
from tilec.ir.algebra import simplify
from tilec.ir.expr import constant_value, operands
from tilec.ir.plan import Plan
from tilec.ir.types import tensor_bytes


def memory_map(plan: Plan) -> dict[str, Any] | None:
    """`size` of the arena in bytes and its tensors as `[name, offset, bytes, first, last]`, where first and last are
    the numbers of the group that writes it and of the last one that reads it. None where sizes depend on symbols, or
    nothing is kept between groups."""
    ports = {port.tensor for port in (*plan.inputs, *plan.outputs)}
    born = {t: n for n, group in enumerate(plan.groups) for t in group.outputs if t not in ports}
    last = dict(born)
    for number, group in enumerate(plan.groups):
        for node in group.nodes:
            last |= {t: max(number, last[t]) for t in operands(node.expr) if t in last}
    for call in plan.calls:
        last |= {port.tensor: len(plan.groups) - 1 for port in call.inputs if port.tensor in last}
    sizes = {t: constant_value(simplify(tensor_bytes(plan.tensors[t].ttype, plan.tensors[t].shape))) for t in born}
    lives = [Life(t, size, born[t], last[t]) for t, size in sizes.items() if size is not None]
    if not lives or len(lives) < len(sizes):
        return None
    arena = plan_memory(lives)
    if not arena.size:
        return None
    tensors = [[each.tensor, arena.offsets[each.tensor], each.size, each.born, each.dies] for each in lives]
    return {"size": arena.size, "tensors": tensors}
