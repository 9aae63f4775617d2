"""Costs of a plan or a group as named metrics: traffic, transactions and footprint per level, predicted time,
operations, launches (Welder, 3.2 and 4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import Binary, Call, Const, Expr
from tilec.ir.plan import Group, Plan
from tilec.ir.text import text_of

COUNTS = ("groups", "launches", "kernels", "nodes", "calls")
"""Metrics that are counts."""

Costs = Mapping[str, Expr]
"""Map from metric to value: bytes (traffic, footprint, unfused), picoseconds, operations or a count."""


def pair(plan: Plan, level: str) -> str:
    """A level and the one below it, between which its bytes are counted: `dram->l2`."""
    names = [each.name for each in plan.levels]
    return f"{names[names.index(level) - 1]}->{level}"


def lowest(plan: Plan) -> str:
    """The level above the lowest one, into which all data of the lowest go."""
    return plan.levels[min(1, len(plan.levels) - 1)].name


def traffic(plan: Plan) -> Expr:
    """Bytes that all groups move between the lowest level and the next; costs are counted at the upper one."""
    return total(traffic_of(group, plan) for group in plan.groups)


def at_level(plan: Plan, level: str) -> Expr:
    """Bytes that all groups move between a level and the one below it."""
    return total(moved_at(group, level) for group in plan.groups)


def traffic_of(group: Group, plan: Plan) -> Expr:
    """Bytes that a group moves between the lowest level and the next."""
    return moved_at(group, lowest(plan))


def moved_at(group: Group, level: str) -> Expr:
    """Bytes that a group moves between a level and the one below it."""
    return total(side[level] for side in (group.cost.read, group.cost.written) if level in side)


def unfused(plan: Plan) -> Expr:
    """The traffic of the plan with a group for every node."""
    return simplify(plan.unfused.get(lowest(plan), Const(0)))


def transactions(plan: Plan, level: str) -> Expr:
    """Number of transactions of a level in all groups."""
    return total(group.cost.transactions.get(level, Const(0)) for group in plan.groups)


def predicted(plan: Plan) -> int:
    """Predicted time of one run in picoseconds; 0 where nothing is predicted."""
    shared = {name for launch in plan.launches for name in launch.groups}
    alone = sum(group.cost.picoseconds for group in plan.groups if group.name not in shared)
    return alone + sum(launch.picoseconds for launch in plan.launches)


def launch_count(plan: Plan) -> int:
    """Launches of one run: one for every group, but for those that share one."""
    return len(plan.groups) - sum(len(launch.groups) - 1 for launch in plan.launches)


def plan_costs(plan: Plan) -> Costs:
    """The metrics of a plan.

    `traffic` between the lowest level and the next, `traffic@LEVEL` below every one, the number of
    `transactions@LEVEL`, the largest `footprint@LEVEL` of a group, predicted `picoseconds`, `flops`, `unfused` (traffic
    with every group a single node), and counts. A launch is one start of a kernel, `kernels` are the different ones.
    """
    kernels = {variant.kernel for group in plan.groups for variant in group.variants}
    counts = {"groups": len(plan.groups), "launches": launch_count(plan), "kernels": len(kernels)}
    return {
        **{name: Const(count) for name, count in counts.items()},
        "traffic": traffic(plan),
        "unfused": unfused(plan),
        **group_costs(plan, plan.groups),
    }


def group_costs(plan: Plan, groups: Iterable[Group]) -> Costs:
    """The metrics of some groups of a plan, levels lowest first; all but the footprint are summed."""
    costs = [group.cost for group in groups]
    levels = [level.name for level in plan.levels]
    values: dict[str, Expr] = {}
    for level in levels[1:]:
        moved = [side[level] for cost in costs for side in (cost.read, cost.written) if level in side]
        if moved:
            values[f"traffic@{level}"] = total(moved)
    for level in levels:
        counts = [cost.transactions[level] for cost in costs if level in cost.transactions]
        if counts:
            values[f"transactions@{level}"] = total(counts)
    for level in levels[1:]:
        footprints = [cost.footprint[level] for cost in costs if level in cost.footprint]
        if footprints:
            values[f"footprint@{level}"] = _largest(footprints)
    picoseconds = sum(cost.picoseconds for cost in costs)
    predicted = {"picoseconds": Const(picoseconds)} if picoseconds else {}
    return {**predicted, **values, "flops": total(cost.flops for cost in costs)}


def total(values: Iterable[Expr]) -> Expr:
    """The sum of sizes, simplified."""
    result: Expr = Const(0)
    for value in values:
        result = simplify(Binary("+", result, value))
    return result


def _largest(values: Iterable[Expr]) -> Expr:
    """The maximum of the values that are not dominated by another for every size of the symbols."""
    parts = dict.fromkeys(part for value in values for part in _parts(value))
    maximal: list[Expr] = []
    for part in parts:
        if not any(_covers(other, part) for other in maximal):
            maximal = [*(other for other in maximal if not _covers(part, other)), part]
    return reduce(lambda a, b: Call("maximum", (a, b)), sorted(maximal, key=text_of))


def _parts(value: Expr) -> Iterator[Expr]:
    """The operands of a maximum."""
    if isinstance(value, Call) and value.fn == "maximum":
        for argument in value.args:
            yield from _parts(argument)
    else:
        yield simplify(value)


def _covers(a: Expr, b: Expr) -> bool:
    lowest, _ = bounds_of(Binary("-", a, b))
    return lowest is not None and lowest >= 0
