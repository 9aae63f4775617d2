"""What a plan or a group costs, as named metrics: traffic and footprint per level, operations, launches (W08, W50)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Call, Const, Expr
from tilec.ir.plan import Group, Plan

COUNTS = ("groups", "launches", "kernels")
"""Metrics that are numbers of things; all others but `flops` are bytes."""

Costs = Mapping[str, Expr]
"""Metric -> value: bytes, operations or a count."""


def traffic(plan: Plan) -> Expr:
    """Bytes that all groups move between the lowest level and the next that they use; costs count at the upper one."""
    return _sum(
        next((moved[level.name] for level in plan.levels[1:] if level.name in moved), Const(0))
        for group in plan.groups
        for moved in (group.cost.read, group.cost.written)
    )


def plan_costs(plan: Plan) -> Costs:
    """The metrics of a plan: `traffic` at its lowest level and `traffic@LEVEL` below every other one, the largest
    `footprint@LEVEL` of a group, `flops`, `unfused` (traffic with every group a single node), and counts. A launch is
    one start of a kernel, `kernels` are the different ones."""
    kernels = {variant.kernel for group in plan.groups for variant in group.variants}
    counts = {"groups": len(plan.groups), "launches": len(plan.groups), "kernels": len(kernels)}
    return {
        **{name: Const(count) for name, count in counts.items()},
        "traffic": traffic(plan),
        "unfused": simplify(plan.unfused_traffic),
        **group_costs(plan, plan.groups),
    }


def group_costs(plan: Plan, groups: Iterable[Group]) -> Costs:
    """The metrics of some groups of a plan, levels lowest first; traffic and operations added up."""
    costs = [group.cost for group in groups]
    levels = [level.name for level in plan.levels]
    values: dict[str, Expr] = {}
    for level in levels[1:]:
        moved = [side[level] for cost in costs for side in (cost.read, cost.written) if level in side]
        if moved:
            values[f"traffic@{level}"] = _sum(moved)
    for level in levels[1:]:
        held = [cost.footprint[level] for cost in costs if level in cost.footprint]
        if held:
            values[f"footprint@{level}"] = _largest(held)
    return {**values, "flops": _sum(cost.flops for cost in costs)}


def _sum(values: Iterable[Expr]) -> Expr:
    total: Expr = Const(0)
    for value in values:
        total = simplify(Binary("+", total, value))
    return total


def _largest(values: Iterable[Expr]) -> Expr:
    distinct = list(dict.fromkeys(simplify(value) for value in values))
    largest = distinct[0]
    for value in distinct[1:]:
        largest = simplify(Call("maximum", (largest, value)))
    return largest
