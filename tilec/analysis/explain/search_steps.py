"""The verdicts of the search on an edge, in the order of its steps: of every step that changed the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilec.analysis.explain.figures import Join
from tilec.analysis.explain.replay import Replay, group_of
from tilec.ir.plan import Refusal
from tilec.scheduler.explain_search import (
    GroupSet,
    Members,
    PlanState,
    SearchState,
    SearchStep,
    Step,
    copies_of,
    edge_verdict,
    last_decision,
)
from tilec.scheduler.refusals import edge_name, refusal

CALLS = "calls"
CALLS_RULE = "groups run before or after a call of onnxruntime, none holds it"


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """The verdict of one step: at which level, why the edge is not connected there (None: it is), by which rule."""

    step: str
    level: str
    reason: Refusal | None
    rule: str


def step_verdicts(replay: Replay, tensor: str, node: str) -> Iterator[StepVerdict]:
    """The steps that had a say: passes over the graph that left the edge with a reason, steps of the search that
    changed the verdict, and the comparison of whole plans where it took one that does not connect the edge."""
    name = edge_name(tensor, node)
    verdicts = list(_group_verdicts(replay, tensor, node))
    if not verdicts:
        yield StepVerdict(CALLS, "", None, CALLS_RULE)
        return
    yield from _pass_verdicts(replay, name)
    yield from verdicts
    best, fullest = replay.best, replay.fullest
    if best is not fullest and any(name in group.connect for group in fullest.plan.groups):
        reason = refusal(tensor, node, "slower", joined=fullest.cost, apart=best.cost)
        for entry in replay.trace.entries:
            if isinstance(entry.after, PlanState):
                yield StepVerdict(entry.step.name, "", reason, entry.step.rule)


def _pass_verdicts(replay: Replay, name: str) -> Iterator[StepVerdict]:
    reason = replay.fullest.draft.refused.get(name)
    if reason is None:
        return
    for entry in replay.trace.entries:
        before, after = (getattr(each, "refused", {}).get(name) for each in (entry.before, entry.after))
        if not isinstance(entry.after, SearchState) and before != reason == after:
            yield StepVerdict(entry.step.name, "", reason, entry.step.rule)
            return


def _group_verdicts(replay: Replay, tensor: str, node: str) -> Iterator[StepVerdict]:
    for state in replay.fullest.built:
        copies, last = copies_of(state), None
        for entry in replay.entries(state, *(copies.get(each, each) for each in (tensor, node))):
            verdict = edge_verdict(entry.after, tensor, node, copies)
            if verdict is not None and verdict != last:
                last = verdict
                level = verdict.level or _level(entry.step, entry.after, tensor, node)
                yield StepVerdict(entry.step.name, level, verdict.reason, entry.step.rule)


def _level(step: Step, state: SearchState, tensor: str, node: str) -> str:
    """The level at which a step does not connect an edge."""
    target, decision = state.problem.target, last_decision(state, tensor, node)
    if decision is not None:
        return target.levels[decision.level].name
    return step.level(target) if isinstance(step, SearchStep) else ""


def join_of(replay: Replay, home: GroupSet, tensor: str, node: str) -> Join | None:
    """The groups beside an edge as one: those that the partition compares, the single parts of a group that fell
    apart, or the two halves of a group at an edge that it connects; None inside of a part."""
    problem = home.problem
    producer, reader = (problem.home[each] for each in (tensor, node))
    one, other = (group_of(home, each) for each in (tensor, node))
    if producer == reader or one is None or other is None:
        return None
    gain = replay.thresholds.gain
    if one != other:
        return Join(problem, (one, other), gain)
    if any(edge_name(tensor, node) in group.connect for group in replay.plan.groups):
        before = _leading_to(home, producer, one)
        return Join(problem, (before, tuple(n for n in one if n not in before)), gain)
    return Join(problem, tuple((n,) for n in one), gain)


def _leading_to(home: GroupSet, producer: int, members: Members) -> Members:
    """The parts of a group that a part needs, with itself."""
    needed, waiting = {producer}, [producer]
    while waiting:
        new = home.problem.needs[waiting.pop()] & set(members) - needed
        needed |= new
        waiting += new
    return tuple(sorted(needed))
