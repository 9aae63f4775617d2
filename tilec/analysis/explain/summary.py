"""What a plan decided, in one view: the whole plans that were compared, its groups, its reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tilec.analysis.explain.replay import Replay, unit_of
from tilec.analysis.size_variants import PlanAt
from tilec.analysis.totals import predicted, traffic_of
from tilec.ir.expr import constant_value
from tilec.ir.graph import Rounding
from tilec.ir.plan import Group, Plan, SharedLaunch
from tilec.scheduler.refusals import ReductionSpread


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """A whole plan that was compared: how far it fuses, what it does without for passes that were left out, what it
    comes to (picoseconds or bytes), its groups, whether it was taken."""

    fusion: str
    without: tuple[str, ...]
    cost: int
    groups: int
    taken: bool


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in one line; `traffic` bytes between the lowest level and the next one used, None where that depends on
    symbols; `refused` counts its edges to other groups by reason. `variants` of a plan with symbols."""

    number: int
    name: str
    operators: str
    nodes: int
    levels: tuple[str, ...]
    picoseconds: int
    traffic: int | None
    refused: Mapping[str, int]
    variants: int = 0


@dataclass(frozen=True, slots=True)
class ReductionRow:
    """Reductions about which the same was decided, whether to spread them over partial results, by the same figures."""

    nodes: tuple[str, ...]
    decision: ReductionSpread


@dataclass(frozen=True, slots=True)
class RoundingRow:
    """Products whose activations may be rounded, and what came of it."""

    nodes: tuple[str, ...]
    rounding: Rounding


@dataclass(frozen=True, slots=True)
class Summary:
    """What a plan decided; `same` tells whether the search comes to it again. `sizes` are those that the figures of
    a plan with symbols are for, `launches` those that groups share, `roundings` products that may be rounded,
    `picoseconds` the predicted time of the plan, 0 where none is; `candidates` have what the search estimated."""

    name: str
    device: str
    objective: str
    fusion: str
    unit: str
    same: bool
    candidates: tuple[CandidateRow, ...]
    reductions: tuple[ReductionRow, ...]
    groups: tuple[GroupRow, ...]
    refused: Mapping[str, int]
    sizes: Mapping[str, int] = field(default_factory=dict)
    launches: tuple[SharedLaunch, ...] = ()
    roundings: tuple[RoundingRow, ...] = ()
    picoseconds: int = 0


def summarised(replay: Replay, plan: Plan, at: PlanAt | None = None) -> Summary:
    """The summary of a plan whose search was run again; with figures `at` some sizes of a plan with symbols."""
    if at is not None and plan.symbols:
        there = summarised(replay, at.plan)
        rows = (replace(row, variants=len(g.variants)) for row, g in zip(there.groups, plan.groups, strict=True))
        return replace(there, groups=tuple(rows), sizes=dict(at.sizes), same=same(plan, replay.plan))
    candidates = [
        CandidateRow(
            each.fusion,
            each.draft.without,
            each.cost,
            sum(len(state.seconds) for state in each.legal),
            each is replay.best,
        )
        for each in replay.candidates
    ]
    return Summary(
        plan.name,
        plan.device,
        replay.options.objective,
        replay.options.fusion,
        unit_of(replay.options.objective if replay.options.objective == "traffic" else "time"),
        same(plan, replay.plan),
        tuple(candidates),
        _reductions(replay),
        tuple(_row(number, group, plan, replay) for number, group in enumerate(plan.groups, 1)),
        _counted(reason.code for reason in replay.plan.refusals),
        launches=plan.launches,
        roundings=_roundings(plan),
        picoseconds=predicted(plan),
    )


def same(plan: Plan, other: Plan) -> bool:
    """Whether two plans decide the same; bounds are no decision."""
    return _decided(plan) == _decided(other)


def _decided(plan: Plan) -> Plan:
    groups = tuple(replace(group, bounds={}) for group in plan.groups)
    return replace(plan, groups=groups, bounds={}, capacities={})


def _row(number: int, group: Group, plan: Plan, replay: Replay) -> GroupRow:
    results = {node.name for node in group.nodes}
    beside = [reason.code for e, reason in replay.refusals.items() if results & set(e.split("->"))]
    return GroupRow(
        number,
        group.name,
        " ".join(dict.fromkeys(node.op or "(none)" for node in group.nodes)),
        len(group.nodes),
        tuple(level.name for level in plan.levels if level.name in group.connect.values()),
        group.cost.picoseconds,
        constant_value(traffic_of(group, plan)),
        _counted(beside),
    )


def _reductions(replay: Replay) -> tuple[ReductionRow, ...]:
    """What was decided about the reductions of the graph, for one row of those that are split alike each."""
    alike: dict[ReductionSpread, list[str]] = {}
    for name, decision in replay.state.search.drafts[0].spread.items():
        alike.setdefault(replace(decision, node=""), []).append(name)
    return tuple(ReductionRow(tuple(names), decision) for decision, names in alike.items())


def _roundings(plan: Plan) -> tuple[RoundingRow, ...]:
    """The products of a plan that may be rounded, one row for those of which the same came."""
    alike: dict[Rounding, list[str]] = {}
    for name, rounding in plan.roundings.items():
        alike.setdefault(rounding, []).append(name)
    return tuple(RoundingRow(tuple(names), rounding) for rounding, names in alike.items())


def _counted(codes: Iterable[str]) -> dict[str, int]:
    counts = Counter(codes)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
