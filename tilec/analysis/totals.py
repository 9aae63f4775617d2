"""Costs of a plan or a group as named metrics: traffic, transactions and footprint per level, predicted time,
operations, launches (Welder, 3.2 and 4.1).

Groups in a serial loop count once for each of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce

from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import Binary, Call, Const, Expr, constant_value
from tilec.ir.loop_steps import loop_steps, usual_loop_steps
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
    return at_level(plan, lowest(plan))


def at_level(plan: Plan, level: str) -> Expr:
    """Bytes that all groups move between a level and the one below it."""
    return in_all_steps(plan, lambda group: moved_at(group, level))


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
    return in_all_steps(plan, lambda group: group.cost.transactions.get(level, Const(0)))


def predicted(plan: Plan) -> int:
    """Predicted time of one run in picoseconds; 0 where nothing is predicted."""
    alone = {group.name: group.cost.picoseconds for group in plan.groups}
    spared = sum(sum(alone[name] for name in each.groups) - each.picoseconds for each in plan.launches)
    return _number(in_all_steps(plan, lambda group: Const(group.cost.picoseconds))) - spared


def launches(plan: Plan) -> int:
    """Number of launches of one run: one for every group, but for those that share one."""
    shared = sum(len(each.groups) - 1 for each in plan.launches)
    return _number(in_all_steps(plan, lambda _: Const(1))) - shared


def in_all_steps(plan: Plan, cost: Callable[[Group], Expr]) -> Expr:
    """What groups cost in one run, each as often as it runs at the sizes that the plan's costs are for."""
    steps = usual_loop_steps(plan)
    return total(_times(cost(group), group, steps) for group in plan.groups)


def plan_costs(plan: Plan) -> Costs:
    """The metrics of a plan.

    `traffic` between the lowest level and the next, `traffic@LEVEL` below every one, the number of
    `transactions@LEVEL`, the largest `footprint@LEVEL` of a group, predicted `picoseconds`, `flops`, `unfused` (traffic
    with every group a single node), and counts. A launch is one start of a kernel, `kernels` are the different ones.
    """
    kernels = {variant.kernel for group in plan.groups for variant in group.variants}
    counts = {"groups": len(plan.groups), "launches": launches(plan), "kernels": len(kernels)}
    return {
        **{name: Const(count) for name, count in counts.items()},
        "traffic": traffic(plan),
        "unfused": unfused(plan),
        **group_costs(plan, plan.groups),
    }


def group_costs(plan: Plan, groups: Iterable[Group]) -> Costs:
    """The metrics of some groups of a plan, levels lowest first; all but the footprint are summed."""
    groups, steps, every = list(groups), usual_loop_steps(plan), loop_steps(plan)
    levels = [level.name for level in plan.levels]
    values: dict[str, Expr] = {}
    for level in levels[1:]:
        if any(level in side for group in groups for side in (group.cost.read, group.cost.written)):
            values[f"traffic@{level}"] = total(_times(moved_at(group, level), group, steps) for group in groups)
    for level in levels:
        counted = [group for group in groups if level in group.cost.transactions]
        if counted:
            requested = (_times(group.cost.transactions[level], group, steps) for group in counted)
            values[f"transactions@{level}"] = total(requested)
    for level in levels[1:]:
        footprints = [group.cost.footprint[level] for group in groups if level in group.cost.footprint]
        if footprints:
            values[f"footprint@{level}"] = _largest(footprints)
    picoseconds = total(_times(Const(group.cost.picoseconds), group, steps) for group in groups)
    predicted = {"picoseconds": picoseconds} if picoseconds != Const(0) else {}
    return {**predicted, **values, "flops": total(_times(group.cost.flops, group, every) for group in groups)}


def _times(value: Expr, group: Group, steps: Mapping[str, Expr]) -> Expr:
    """What a group costs in one step, in all of them."""
    return Binary("*", value, steps[group.name]) if group.name in steps else value


def _number(value: Expr) -> int:
    """A sum of numbers."""
    return constant_value(value) or 0


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
