"""What a plan or a group costs, as named metrics: traffic, transactions and footprint per level, predicted time,
operations, launches (W08, W22, W50)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import Binary, Call, Const, Expr
from tilec.ir.plan import Group, Plan
from tilec.ir.text import text_of

COUNTS = ("groups", "launches", "kernels", "nodes", "calls")
"""Metrics that are small numbers of things."""

Costs = Mapping[str, Expr]
"""Metric -> value: bytes (traffic, footprint, unfused), picoseconds, operations or a count."""


def traffic(plan: Plan) -> Expr:
    """Bytes that all groups move between the lowest level and the next that they use; costs count at the upper one."""
    return total(traffic_of(group, plan) for group in plan.groups)


def traffic_of(group: Group, plan: Plan) -> Expr:
    """Bytes that a group moves between the lowest level and the next that it uses."""
    return total(
        next((moved[level.name] for level in plan.levels[1:] if level.name in moved), Const(0))
        for moved in (group.cost.read, group.cost.written)
    )


def transactions(plan: Plan, level: str) -> Expr:
    """Transactions of a level that all groups take."""
    return total(group.cost.transactions.get(level, Const(0)) for group in plan.groups)


def predicted(plan: Plan) -> int:
    """Predicted time of one run in picoseconds; 0 where nothing is predicted."""
    return sum(group.cost.picoseconds for group in plan.groups)


def plan_costs(plan: Plan) -> Costs:
    """The metrics of a plan: `traffic` at its lowest level and `traffic@LEVEL` below every other one, the number of
    `transactions@LEVEL`, the largest `footprint@LEVEL` of a group, predicted `picoseconds`, `flops`, `unfused` (traffic
    with every group a single node), and counts. A launch is one start of a kernel, `kernels` are the different ones."""
    kernels = {variant.kernel for group in plan.groups for variant in group.variants}
    counts = {"groups": len(plan.groups), "launches": len(plan.groups), "kernels": len(kernels)}
    return {
        **{name: Const(count) for name, count in counts.items()},
        "traffic": traffic(plan),
        "unfused": simplify(plan.unfused_traffic),
        **group_costs(plan, plan.groups),
    }


def group_costs(plan: Plan, groups: Iterable[Group]) -> Costs:
    """The metrics of some groups of a plan, levels lowest first; all but the footprint added up."""
    costs = [group.cost for group in groups]
    levels = [level.name for level in plan.levels]
    values: dict[str, Expr] = {}
    for level in levels[1:]:
        moved = [side[level] for cost in costs for side in (cost.read, cost.written) if level in side]
        if moved:
            values[f"traffic@{level}"] = total(moved)
    for level in levels:
        asked = [cost.transactions[level] for cost in costs if level in cost.transactions]
        if asked:
            values[f"transactions@{level}"] = total(asked)
    for level in levels[1:]:
        held = [cost.footprint[level] for cost in costs if level in cost.footprint]
        if held:
            values[f"footprint@{level}"] = _largest(held)
    picoseconds = sum(cost.picoseconds for cost in costs)
    predicted = {"picoseconds": Const(picoseconds)} if picoseconds else {}
    return {**predicted, **values, "flops": total(cost.flops for cost in costs)}


def total(values: Iterable[Expr]) -> Expr:
    """The sum of some sizes, simplified."""
    found: Expr = Const(0)
    for value in values:
        found = simplify(Binary("+", found, value))
    return found


def _largest(values: Iterable[Expr]) -> Expr:
    """The maximum of all, of those that no other one covers for every size of the symbols."""
    parts = dict.fromkeys(part for value in values for part in _parts(value))
    kept: list[Expr] = []
    for part in parts:
        if not any(_covers(other, part) for other in kept):
            kept = [*(other for other in kept if not _covers(part, other)), part]
    return reduce(lambda a, b: Call("maximum", (a, b)), sorted(kept, key=text_of))


def _parts(value: Expr) -> Iterator[Expr]:
    """What a maximum is taken over."""
    if isinstance(value, Call) and value.fn == "maximum":
        for argument in value.args:
            yield from _parts(argument)
    else:
        yield simplify(value)


def _covers(a: Expr, b: Expr) -> bool:
    lowest, _ = bounds_of(Binary("-", a, b))
    return lowest is not None and lowest >= 0
