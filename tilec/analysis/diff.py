"""The semantic diff of two plans: the changes of every group and of its costs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from tilec.analysis.change import BoundMetric, Change, GroupChange, Kind, Metric, PlanDiff, Side
from tilec.analysis.decisions import STRUCTURE, differences, edges, expressions, nodes, variants
from tilec.analysis.diff_context import diff_context
from tilec.analysis.match import PLAIN, Family, Matching, families, match_nodes
from tilec.analysis.ratios import Ratio, group_ratios, plan_ratio
from tilec.analysis.totals import Costs, group_costs, plan_costs
from tilec.ir.bind_plan import plan_sizes
from tilec.ir.plan import Group, Plan, Variant
from tilec.ir.sizes import sizes_text


def diff_plans(old: Plan, new: Plan) -> PlanDiff:
    """The differences between two plans, of the same model or not; differences of names alone do not count.

    Groups are matched by the nodes that they share, nodes by their content. Facts are in the names of the new plan.
    Traffic is in bytes, exact as in the plans; costs that depend on symbols are compared algebraically.
    """
    matching = match_nodes(old, new)
    related = families(old, new, matching)
    family_changes = [became(family, old, new, matching) for family in related]
    changed = tuple(change for change in family_changes if change is not None)
    return PlanDiff(
        _side(old),
        _side(new),
        len(family_changes) - len(changed),
        (*diff_context(old, new, matching), *_reordered(old, related)),
        changed,
        metrics(plan_costs(old), plan_costs(new), changed_only=False),
        tuple(_paired([plan_ratio(old)], [plan_ratio(new)])),
    )


def _side(plan: Plan) -> Side:
    return Side(plan.name, plan.device, len(plan.groups), sizes_text(plan_sizes(plan)))


def became(family: Family, old: Plan, new: Plan, matching: Matching) -> GroupChange | None:
    """The change of a family of groups; None when nothing differs."""
    changes = differences(
        nodes(family.old, matching) | edges(family.old, matching), nodes(family.new, PLAIN) | edges(family.new, PLAIN)
    )
    both = family.new or family.old
    whole: Kind | None = _shape(len(family.old), len(family.new))
    if whole in ("added", "removed"):
        changes = []
    else:
        changes += expressions(family.old, family.new, matching)
    if whole is None:
        (one,), (other,) = family.old, family.new
        changes += differences(variants(one, matching, other), variants(other, PLAIN, other), _class(other))
        changes = [change for change in changes if change.kind != "kernel"] or changes
    costs = metrics(_costs(old, family.old), _costs(new, family.new), changed_only=whole is None)
    if whole is None and not changes and not costs:
        return None
    alone = len(family.old) <= 1 and len(family.new) <= 1
    pairs = _paired(*([r for group in side for r in group_ratios(group)] for side in (family.old, family.new)))
    bounds = [pair for pair in pairs if pair.changed] if alone else []
    return GroupChange(
        (whole,) if whole is not None else _kinds(changes),
        tuple(group.name for group in family.old),
        tuple(group.name for group in family.new),
        " ".join(dict.fromkeys(node.op or "(none)" for group in both for node in group.nodes)),
        tuple(changes),
        costs,
        tuple(bounds),
    )


def _class(group: Group) -> type[Variant]:
    """The class of a group's variants, whose fields are what it decides; the nodes of graphs are groups without any."""
    return type(group.variants[0]) if group.variants else Variant


def _shape(old: int, new: int) -> Kind | None:
    """The kind of change that follows from the numbers of groups; None for one group on each side."""
    if not old or not new:
        return "removed" if old else "added"
    if old == new == 1:
        return None
    return "split" if old == 1 else "merged" if new == 1 else "regrouped"


def _kinds(changes: Sequence[Change]) -> tuple[Kind, ...]:
    """The kinds of change of a group that is still one; its kernel's name follows from everything else."""
    facts = {change.kind for change in changes}
    kinds: list[Kind] = []
    if "connect" in facts:
        kinds.append("reconnected")
    if facts - {*STRUCTURE, "kernel"}:
        kinds.append("retiled")
    if facts & ({*STRUCTURE} - {"connect"}):
        kinds.append("rewritten")
    return tuple(kinds) or (("other kernel",) if facts else ("recosted",))


def _costs(plan: Plan, groups: Sequence[Group]) -> Costs | None:
    return group_costs(plan, groups) if groups else None


def _paired(before: Sequence[Ratio | None], after: Sequence[Ratio | None]) -> Iterator[BoundMetric]:
    """Ratios of the same level side by side, in the order of the new plan."""
    old, new = ({ratio.level: ratio for ratio in side if ratio is not None} for side in (before, after))
    for level in dict.fromkeys((*new, *old)):
        pair = old.get(level), new.get(level)
        if any(ratio is not None and ratio.bound.known is not None for ratio in pair):
            yield BoundMetric(level, *pair)


def metrics(before: Costs | None, after: Costs | None, *, changed_only: bool) -> tuple[Metric, ...]:
    """Costs side by side, in the order in which the plans list them."""
    old, new = before or {}, after or {}
    pairs = [Metric(name, old.get(name), new.get(name)) for name in _merged(list(old), list(new))]
    return tuple(metric for metric in pairs if metric.changed or not changed_only)


def _merged(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Names of both sides, traffic before footprint before the rest, each in the order of the new plan."""
    names = list(dict.fromkeys((*new, *old)))
    return sorted(names, key=lambda name: (name == "flops", "@" in name, name.partition("@")[0] != "traffic"))


def _reordered(old: Plan, related: Sequence[Family]) -> list[Change]:
    """Groups that stayed and changed their place: all but the longest increasing subsequence of old places."""
    place = {group.name: n for n, group in enumerate(old.groups)}
    stayed = [(family.old[0], family.new[0]) for family in related if len(family.old) == len(family.new) == 1]
    unmoved = _longest_rising([place[one.name] for one, _ in stayed])
    was = {name: n for n, name in enumerate(sorted((one.name for one, _ in stayed), key=place.__getitem__))}
    return [
        Change("order", other.name, was[one.name] + 1, n + 1)
        for n, (one, other) in enumerate(stayed)
        if n not in unmoved
    ]


def _longest_rising(values: Sequence[int]) -> set[int]:
    """Places of a longest increasing subsequence of distinct numbers."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int | None] = []
    for n, value in enumerate(values):
        k = bisect_left(tails, value)
        before.append(ends[k - 1] if k else None)
        tails[k : k + 1] = [value]
        ends[k : k + 1] = [n]
    rising: set[int] = set()
    at = ends[-1] if ends else None
    while at is not None:
        rising.add(at)
        at = before[at]
    return rising
