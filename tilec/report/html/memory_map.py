"""Memory maps: tensors between groups, and buffers within a kernel, by offset and lifetime (Welder, 4.2).

The arena between groups follows the rule by which code generation lays it out; buffers of a kernel lie where its tile
program says.
"""

from __future__ import annotations

from math import lcm
from typing import Any

from tilec.abi.alignment import ALIGNMENT
from tilec.ir.address_spaces import places
from tilec.ir.algebra import simplify
from tilec.ir.call_segments import segment_of
from tilec.ir.concurrency import iterations_per_unit
from tilec.ir.expr import constant_value, operands
from tilec.ir.lifetimes import spans, statements
from tilec.ir.memory_plan import Life, plan_memory
from tilec.ir.plan import Plan
from tilec.ir.program import Allocate, Program
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
    for done, call in enumerate(plan.calls):
        end = _last_before(plan, done) if call.updates else len(plan.groups) - 1
        last |= {port.tensor: max(last[port.tensor], end) for port in call.inputs if port.tensor in last}
    sizes = {t: constant_value(simplify(tensor_bytes(plan.tensors[t].ttype, plan.tensors[t].shape))) for t in born}
    lives = [Life(t, size, born[t], last[t]) for t, size in sizes.items() if size is not None]
    if not lives or len(lives) < len(sizes):
        return None
    arena = plan_memory(lives, lcm(ALIGNMENT, plan.levels[0].alignment or 1))
    if not arena.size:
        return None
    tensors = [[each.name, arena.offsets[each.name], each.size, each.born, each.dies] for each in lives]
    return {"size": arena.size, "tensors": tensors}


def _last_before(plan: Plan, call: int) -> int:
    """The number of the last group that runs before a call."""
    segments = segment_of((node for group in plan.groups for node in group.nodes), plan.calls)
    inside = [n for n, group in enumerate(plan.groups) if max(segments[node.name] for node in group.nodes) <= call]
    return max(inside, default=0)


def place_maps(program: Program) -> dict[str, dict[str, Any]]:
    """Level or pool -> `size` up to the end of its highest place in bytes, and its buffers as `[name, offset, bytes,
    first, last]`, where first and last count single statements in the order of the program. Places that depend on
    symbols are left out."""
    inner = [s.buffer for s in statements(program.body) if isinstance(s, Allocate)]
    alive = spans(program.body)
    maps: dict[str, dict[str, Any]] = {}
    for name, place in places(inner, program.levels, iterations_per_unit(program.body, program.levels)).items():
        begin, end = constant_value(place.begin), constant_value(place.end)
        if begin is None or end is None or begin == end:
            continue
        there = maps.setdefault(f"pool {place.space.name}" if place.space.pooled else place.space.name, {"size": 0})
        there["size"] = max(there["size"], end)
        there.setdefault("tensors", []).append([name, begin, end - begin, *alive[name]])
    return maps
