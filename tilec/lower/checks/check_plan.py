"""Legality of a group's plan before lowering, and capacity check of its program, by refusals instead of exceptions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from tilec.errors import did_you_mean
from tilec.ir.expr import Const, TensorExpr, operands
from tilec.ir.plan import Group, Plan, Refusal, Variant
from tilec.ir.program import Program
from tilec.ir.types import HALVES
from tilec.lower.checks.check_shared import shared_levels, shared_names, shared_order
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.connected_parts import ConnectedPart, connected_parts
from tilec.lower.counts.footprint import footprint, pools_of
from tilec.lower.lowering_context import LoweringContext, lowering_context

Nodes = Mapping[str, TensorExpr]


def problems(group: Group, variant: Variant, plan: Plan) -> tuple[Refusal, ...]:
    """Every refusal of a group under one variant; empty for a plan that can be lowered."""
    known = {level.name for level in plan.levels}
    refusals = [Refusal(group.name, "unknown-level", {"level": name}) for name in variant.levels if name not in known]
    if refusals:
        return tuple(refusals)
    nodes = {node.name: node.expr for node in group.nodes}
    ranks = {name: len(tensor.shape) for name, tensor in plan.tensors.items()}
    refusals = [*_levels(group, variant), *_names(variant, nodes, ranks), *_sizes(variant, nodes)]
    refusals += [*_permutations(variant, nodes, ranks), *_order(group), *shared_names(variant, nodes)]
    refusals += _wide(group, variant, plan)
    if not refusals:
        s = lowering_context(group, variant, plan)
        refusals = [refusal for loop in s.shared.values() for refusal in shared_order(group, loop, nodes)]
        refusals = refusals or _cycles(s, tuple(s.nodes), 0)
        refusals = refusals or [refusal for loop in s.shared.values() for refusal in shared_levels(s, loop)]
    return tuple(refusals)


def overflows(program: Program) -> tuple[Refusal, ...]:
    """Explicit levels and pools whose capacity a program exceeds (MemFootprint > capacity; Welder, 3.2). A footprint in
    unbound symbols is not checked."""
    sizes, shared = footprint(program), pools_of(program.body, program.levels)
    explicit = [level for level in program.levels if level.managed == "explicit"]
    limits = [(level.name, sizes[level.name], level.capacity) for level in explicit if level.capacity is not None]
    pools = {level.pool.name: level.pool.capacity for level in explicit if level.pool is not None}
    limits += [(f"pool {name}", shared.get(name, Const(0)), capacity) for name, capacity in pools.items()]
    return tuple(
        Refusal(program.name, "capacity", {"level": name, "bytes": int(size.value), "capacity": capacity})
        for name, size, capacity in limits
        if isinstance(size, Const) and size.value > capacity
    )


def _unknown(edge: str, what: str, name: str, options: Collection[str]) -> Refusal:
    near = did_you_mean(name, options)
    return Refusal(edge, "unknown-name", {"what": what, "name": name} | ({"near": near} if near else {}))


def _levels(group: Group, variant: Variant) -> Iterator[Refusal]:
    """Names of levels that the variant does not have."""
    named = [(edge, level) for edge, level in group.connect.items()]
    for table in (variant.tiles, variant.steps, variant.order, variant.tails, variant.copies, variant.layouts):
        named += [(group.name, level) for level in table]
    named += [(tensor, level) for tensor, levels in variant.loads.items() for level in levels]
    for edge, level in named:
        if level not in variant.levels:
            near = did_you_mean(level, variant.levels)
            yield Refusal(edge, "unknown-level", {"level": level} | ({"near": near} if near else {}))


def _names(variant: Variant, nodes: Nodes, tensors: Collection[str]) -> Iterator[Refusal]:
    """Names of nodes and tensors that the group and the plan do not have."""
    for table in (variant.tiles, variant.steps, variant.order, variant.tails):
        for level, entries in table.items():
            yield from (_unknown(level, "node", name, nodes) for name in entries if name not in nodes)
    yield from (_unknown("units", "node", name, nodes) for name in variant.units if name not in nodes)
    for storage in (variant.copies, variant.layouts):
        for level, of in storage.items():
            yield from (_unknown(level, "tensor", name, tensors) for name in of if name not in tensors)
    yield from (_unknown("loads", "tensor", name, tensors) for name in variant.loads if name not in tensors)


def _wide(group: Group, variant: Variant, plan: Plan) -> Iterator[Refusal]:
    """Tensors that cannot be stored as f32: only half precision tensors that stay inside the group can."""
    inside = [node.name for node in group.nodes if node.name not in group.outputs]
    halves = [name for name in inside if plan.tensors[name].ttype in HALVES]
    what = "half precision tensor that stays inside"
    yield from (_unknown("wide", what, name, halves) for name in variant.wide if name not in halves)


def _sizes(variant: Variant, nodes: Nodes) -> Iterator[Refusal]:
    """Tiles and steps of iterators that a node does not have, and sizes and copies below 1."""
    for what, table in (("tile", variant.tiles), ("reduce step", variant.steps)):
        for level, entries in table.items():
            for name, sizes in entries.items():
                iterators = (nodes[name].spatial if what == "tile" else nodes[name].reduce) if name in nodes else ()
                for iterator, size in sizes.items() if name in nodes else ():
                    if iterator not in iterators:
                        yield _unknown(name, f"iterator for a {what}", iterator, iterators)
                    elif size < 1:
                        yield _small(name, f"{what} of {iterator}", level, size)
    for level, copies in variant.copies.items():
        yield from (_small(tensor, "number of copies", level, n) for tensor, n in copies.items() if n < 1)


def _small(edge: str, what: str, level: str, size: int) -> Refusal:
    return Refusal(edge, "size", {"what": what, "level": level, "size": size})


def _permutations(variant: Variant, nodes: Nodes, ranks: Mapping[str, int]) -> Iterator[Refusal]:
    """Orders with an unknown or repeated iterator, layouts that are no permutation of the dimensions."""
    for level, orders in variant.order.items():
        for name, order in orders.items():
            if name in nodes and (len(set(order)) < len(order) or not set(order) <= set(nodes[name].spatial)):
                yield Refusal(name, "permutation", {"what": "the order of loops", "level": level})
    for level, layouts in variant.layouts.items():
        for tensor, layout in layouts.items():
            if tensor in ranks and sorted(layout) not in ([], list(range(ranks[tensor]))):
                yield Refusal(tensor, "permutation", {"what": "the layout", "level": level})


def _order(group: Group) -> Iterator[Refusal]:
    """Nodes listed before one that they read, and outputs that no node computes."""
    names = [node.name for node in group.nodes]
    for position, node in enumerate(group.nodes):
        for tensor in operands(node.expr):
            if tensor in names[position:]:
                yield Refusal(f"{tensor}->{node.name}", "order")
    yield from (Refusal(tensor, "not-computed") for tensor in group.outputs if tensor not in names)


def _cycles(s: LoweringContext, part: ConnectedPart, level: int) -> list[Refusal]:
    if level > s.top:
        return []
    try:
        return [refusal for inner in connected_parts(s, part, level) for refusal in _cycles(s, inner, level + 1)]
    except PlanError as error:
        return [error.refusal]
