"""What a plan may not ask of the code of a group: vectors, unrolling, accumulators, fetches and stores that a kernel
cannot have (codes of `plan_errors`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from tilec.codegen.code_decisions import foreign_decisions
from tilec.codegen.cpu.decide import LoweredKernel
from tilec.codegen.cpu.decisions import OWN
from tilec.codegen.cpu.kernel_ir import Dim, Tile
from tilec.codegen.cpu.passes.block_tiles import iterators_of
from tilec.codegen.cpu.pipeline import KernelContext, memories_read
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.cpu.vectorize import forms
from tilec.ir.dots import dot_inside
from tilec.ir.plan import Group, Plan, Refusal, Variant
from tilec.ir.program import Program
from tilec.ir.vector_pieces import vector_count


def check_decisions(
    lowered: LoweredKernel, group: Group, variant: Variant, plan: Plan, context: KernelContext
) -> tuple[Refusal, ...]:
    """What a kernel, lowered as a variant says, cannot have; empty for a legal variant."""
    refusals = [*foreign_decisions(variant, OWN)]
    refusals += [
        refusal
        for node, vector in variant.vectors.items()
        for refusal in _node(node, vector, variant, lowered.full.get(node), context.target)
    ]
    refusals += [
        Refusal(node, "unused", {"what": what, "level": variant.levels[-1], "why": "the plan does not say its vectors"})
        for what, table in (("unrolling", variant.unroll), ("number of accumulators", variant.accumulators))
        for node in table
        if node not in variant.vectors
    ]
    refusals += _units(group, variant, context.target)
    refusals += _prefetch(lowered, variant, context.program)
    return (*refusals, *_streamed(lowered, group, variant, plan, context.program))


def _node(node: str, vector: str, variant: Variant, tile: Tile | None, target: CpuTarget) -> Iterator[Refusal]:
    """What the full tile of a node cannot have."""
    dims = {} if tile is None else {iterators_of(dim)[-1]: dim for dim in tile.dims}
    unroll, accumulators = variant.unroll.get(node, {}), variant.accumulators.get(node, 1)
    if vector and (why := _along(vector, dims, tile)):
        yield Refusal(node, "vector", {"iterator": vector, "why": why})
        return
    for iterator, points in unroll.items():
        size = dims[iterator].size if iterator in dims else None
        if iterator not in dims and points > 1:
            yield Refusal(node, "unroll", {"iterator": iterator, "size": points, "why": _absent(iterator, dims)})
        elif size is not None and points > size:
            yield Refusal(node, "unroll", {"iterator": iterator, "size": points, "why": f"a tile has {size}"})
    if tile is None or tile.blocking is None:
        return
    widths = {i: unroll.get(i, 1) for i in dims}
    body = {i: vector_count(n, tile.blocking.lanes) if i == vector else n for i, n in widths.items()}
    if prod(body.values()) > target.costs.largest_body:
        why = f"a body has {prod(body.values())} steps then, of {target.costs.largest_body} at most"
        longest = max(body, key=body.__getitem__)
        yield Refusal(node, "unroll", {"iterator": longest, "size": widths[longest], "why": why})
    if accumulators > 1:
        points = prod(max(1, body[i]) for i, dim in dims.items() if dim in tile.spatial)
        if tile.reducer is None:
            yield Refusal(node, "accumulators", {"size": accumulators, "why": "nothing is reduced"})
        elif accumulators * points > target.registers:
            why = f"{points} points have {accumulators * points} then, of {target.registers} registers"
            yield Refusal(node, "accumulators", {"size": accumulators, "why": why})


def _along(iterator: str, dims: Mapping[str, Dim], tile: Tile | None) -> str:
    """Why vectors cannot run along an iterator; "" where they can."""
    if tile is None or iterator not in dims:
        return _absent(iterator, dims)
    _, target = forms(tile)
    if dims[iterator] in tile.spatial and target.stride(dims[iterator].name) != 1:
        return "its neighbours do not lie side by side in the result"
    return ""


def _absent(iterator: str, dims: Mapping[str, Dim]) -> str:
    """Why no dimension has the name of an iterator."""
    for last, dim in dims.items():
        if iterator in iterators_of(dim):
            return f"it runs as one with {last}"
    return "a tile has one point along it"


def _units(group: Group, variant: Variant, target: CpuTarget) -> Iterator[Refusal]:
    """Units that the device does not have, or that do not compute what a node does."""
    functions = {node.name: dot_inside(node.expr.value) for node in group.nodes}
    for node, unit in variant.units.items():
        function = functions.get(node, "")
        if not function:
            yield Refusal(node, "unit", {"unit": unit, "why": "it is no sum of products of words"})
        elif target.units.get(function) != unit:
            known = target.units.get(function)
            why = f"the device has {known!r} for {function}" if known else f"the device has no unit for {function}"
            yield Refusal(node, "unit", {"unit": unit, "why": why})


def _prefetch(lowered: LoweredKernel, variant: Variant, program: Program) -> Iterator[Refusal]:
    """Fetches that no pass can make: of what is not read from memory, of what no loop moves far enough."""
    tensors = {parameter.name: parameter.tensor for parameter in program.parameters}
    possible = {tensors[memory]: kind for memory, kind in lowered.prefetch.items()}
    for tensor, kind in variant.prefetch.items():
        if tensor not in tensors.values():
            yield Refusal(tensor, "prefetch", {"what": kind, "why": "it is not handed to the group"})
        elif possible.get(tensor) != kind:
            why = (
                "no loop comes to enough that is new"
                if tensor not in possible
                else f"only {possible[tensor]!r} is possible"
            )
            yield Refusal(tensor, "prefetch", {"what": kind, "why": why})


def _streamed(
    lowered: LoweredKernel, group: Group, variant: Variant, plan: Plan, program: Program
) -> Iterator[Refusal]:
    """Stores past the caches of what does not leave the group, begins anywhere, or is read again."""
    outside = {port.tensor for port in plan.outputs}
    inside = memories_read(lowered.kernel)
    read = {parameter.tensor for parameter in program.parameters if parameter.name in inside}
    for tensor in variant.streamed:
        if tensor not in group.outputs:
            yield Refusal(tensor, "streamed", {"why": "the group does not store it"})
        elif tensor in outside:
            yield Refusal(tensor, "streamed", {"why": "an output of the model may begin inside a vector"})
        elif tensor in read:
            yield Refusal(tensor, "streamed", {"why": "the group reads it again"})
