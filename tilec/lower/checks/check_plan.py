"""Legality of a group's plan before lowering, and capacity check of its program, by refusals instead of exceptions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from tilec.errors import did_you_mean
from tilec.ir.decision_forms import ITERATORS, LEVEL, Dimensions, Form, Items, Name, NameKind, Plain
from tilec.ir.decisions import Leaf, leaves
from tilec.ir.expr import Const, TensorExpr, operands
from tilec.ir.graph import Tensor
from tilec.ir.plan import Group, Plan, Refusal, Variant
from tilec.ir.program import Program
from tilec.ir.types import HALVES
from tilec.lower.checks.check_shared import shared_entries, shared_levels, shared_order
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.connected_parts import ConnectedPart, connected_parts
from tilec.lower.counts.footprint import footprint, pools_of
from tilec.lower.lowering_context import LoweringContext, lowering_context
from tilec.lower.promote_halves import PROMOTED_TTYPE

Nodes = Mapping[str, TensorExpr]


def problems(group: Group, variant: Variant, plan: Plan) -> tuple[Refusal, ...]:
    """Every refusal of a group under one variant; empty for a plan that can be lowered."""
    known = {level.name for level in plan.levels}
    refusals = [Refusal(group.name, "unknown-level", {"level": name}) for name in variant.levels if name not in known]
    if refusals:
        return tuple(refusals)
    nodes = {node.name: node.expr for node in group.nodes}
    parts = tuple(leaves(variant))
    refusals = [*_levels(group, variant, parts), *_names(plan, nodes, parts), *_numbers(parts)]
    refusals += [*_permutations(nodes, plan.tensors, parts), *_types(group, variant, plan), *_order(group)]
    refusals = refusals or list(shared_entries(variant, nodes))
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


def _levels(group: Group, variant: Variant, found: Sequence[Leaf]) -> Iterator[Refusal]:
    """Levels that the variant does not have."""
    named = [(edge, level) for edge, level in group.connect.items()]
    named += [(leaf.subject or group.name, leaf.value) for leaf in found if leaf.form == LEVEL]
    for edge, level in named:
        if level not in variant.levels:
            near = did_you_mean(level, variant.levels)
            yield Refusal(edge, "unknown-level", {"level": level} | ({"near": near} if near else {}))


def _names(plan: Plan, nodes: Nodes, found: Sequence[Leaf]) -> Iterator[Refusal]:
    """Names in decisions of what the group, the plan and the nodes do not have."""
    things: dict[NameKind, tuple[str, Collection[str]]] = {
        "node": ("node", nodes),
        "tensor": ("tensor", plan.tensors),
    }
    for leaf in found:
        if not isinstance(leaf.form, Name) or (leaf.form.optional and not leaf.value):
            continue
        if leaf.form.kind in things:
            what, options = things[leaf.form.kind]
            if leaf.value not in options:
                yield _unknown(leaf.level or leaf.decision.name, what, leaf.value, options)
        elif leaf.form.kind in ITERATORS and leaf.owner in nodes:
            options = _iterators(leaf.form, nodes[leaf.owner])
            if leaf.value not in options:
                yield _unknown(leaf.owner, f"iterator for a {leaf.decision.what}", leaf.value, options)


def _iterators(form: Form, node: TensorExpr) -> Sequence[str]:
    """Iterators that stand for what a form says."""
    kind = form.kind if isinstance(form, Name) else ""
    return node.spatial if kind == "spatial" else node.reduce if kind == "reduce" else node.iterators


def _numbers(found: Sequence[Leaf]) -> Iterator[Refusal]:
    """Tiles, steps and copies below 1."""
    for leaf in found:
        if isinstance(leaf.form, Plain) and leaf.form.least is not None and leaf.value < leaf.form.least:
            what = f"{leaf.decision.what} of {leaf.iterator}" if leaf.iterator else leaf.decision.what
            yield Refusal(leaf.subject, "size", {"what": what, "level": leaf.level, "size": leaf.value})


def _permutations(nodes: Nodes, tensors: Mapping[str, Tensor], found: Sequence[Leaf]) -> Iterator[Refusal]:
    """Orders with a foreign or a repeated iterator, layouts that leave out a dimension."""
    for leaf in found:
        numbers = {"what": f"the {leaf.decision.what}", "level": leaf.level}
        match leaf.form:
            case Items(item) if leaf.owner in nodes:
                known = set(leaf.value) <= set(_iterators(item, nodes[leaf.owner]))
                if len(set(leaf.value)) < len(leaf.value) or not known:
                    yield Refusal(leaf.subject, "permutation", numbers)
            case Dimensions() if leaf.subject in tensors:
                if sorted(leaf.value) not in ([], list(range(len(tensors[leaf.subject].shape)))):
                    yield Refusal(leaf.subject, "permutation", numbers)


def _types(group: Group, variant: Variant, plan: Plan) -> Iterator[Refusal]:
    """Types in which tensors of the group are not held: f32 alone holds half precision without rounding, and sums that
    leave the group are rounded in their own type below the highest level."""
    read = {tensor for node in group.nodes for tensor in operands(node.expr)}
    sums = {node.name for node in group.nodes if node.expr.reduce and node.name in group.outputs}
    halves = [t for t in sorted(read - sums) if plan.tensors[t].ttype in HALVES]
    for level, tensors in variant.held.items():
        for tensor, ttype in tensors.items():
            if level == variant.levels[0]:
                why = {"what": "type in a buffer", "level": level, "why": "tensors have their own types there"}
                yield Refusal(tensor, "unused", why)
            elif tensor not in halves and (level != variant.levels[-1] or tensor not in sums):
                yield _unknown(level, "half precision tensor that the group reads", tensor, halves)
            elif ttype != PROMOTED_TTYPE:
                yield _unknown(tensor, f"type that holds {plan.tensors[tensor].ttype}", ttype, (PROMOTED_TTYPE,))


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
