"""The verdict of a state on an edge: at which level both ends are held together, or why they are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilec.ir.plan import Refusal
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.refusals import edge_name, refusal
from tilec.scheduler.state import GroupSet, LevelDecision, Members, SearchState
from tilec.scheduler.trace import TraceEntry


@dataclass(frozen=True, slots=True)
class EdgeVerdict:
    """`level` at which an edge is connected, empty where it is not; then `reason` says why. `part`: both ends share
    registers."""

    level: str
    reason: Refusal | None
    part: bool = False


def edge_verdict(
    state: SearchState, tensor: str, node: str, copies: Mapping[str, str] | None = None
) -> EdgeVerdict | None:
    """The verdict of a state on the edge from `tensor` to `node`, None where it does not have both. Where a state does
    not have a node that `copies` has, it stands for the node that it is a copy of."""
    tensor, node = (name if _has(state, name) else (copies or {}).get(name, name) for name in (tensor, node))
    target = state.problem.target
    decision = last_decision(state, tensor, node)
    if decision is not None:
        core = last_core(state, tensor, node)
        if joint_group(decision, tensor, node) is None:
            return EdgeVerdict("", _reason(state, tensor, node))
        if core is None:
            return EdgeVerdict(target.levels[decision.level].name, None)
        return edge_verdict(core, tensor, node)
    for problem, members in _groups(state):
        producer, reader = (problem.home.get(name) for name in (tensor, node))
        if producer in members and reader in members:
            part = producer == reader
            return EdgeVerdict(target.top if part else target.core_level, None, part)
    problems = (state.problem, *(of.problem for of in state.sets))
    if any(tensor in problem.home and node in problem.home for problem in problems):
        return EdgeVerdict("", _reason(state, tensor, node))
    return None


def _has(state: SearchState, node: str) -> bool:
    return node in state.problem.home or any(node in of.problem.home for of in _sets(state))


def lineage(entries: Mapping[int, TraceEntry], last: SearchState) -> list[TraceEntry]:
    """The entries that lead to a state, in order; `entries` are those of a trace by the identity of the state after."""
    entries_to: list[TraceEntry] = []
    while id(last) in entries:
        entries_to.append(entries[id(last)])
        last = entries_to[-1].before
    return entries_to[::-1]


def copies_of(state: SearchState) -> dict[str, str]:
    """Copy for a loop -> the node that it is one of, in all sets of groups of a state."""
    return {
        copy: node
        for of in _sets(state)
        if of.problem.chain is not None
        for copy, node in of.problem.chain.copies.items()
    }


def _sets(state: SearchState) -> Iterator[GroupSet]:
    yield from state.sets
    for core in state.cores:
        yield from core.sets


def last_decision(state: SearchState, *nodes: str) -> LevelDecision | None:
    """The last decision at a level below a core's on parts that have all of some nodes."""
    return next((each for each in reversed(state.levels) if all(_number(each, n) is not None for n in nodes)), None)


def last_core(state: SearchState, *nodes: str) -> SearchState | None:
    """The last search at a core's level of parts that have all of some nodes."""
    return next(
        (core for core in reversed(state.cores) if all(any(n in of.problem.home for of in core.sets) for n in nodes)),
        None,
    )


def joint_group(decision: LevelDecision, tensor: str, node: str) -> Members | None:
    """The group of a decision that has both ends of an edge; None for two groups."""
    ends = {_number(decision, tensor), _number(decision, node)}
    return next((group.members for group in decision.groups if ends <= set(group.members)), None)


def _number(decision: LevelDecision, node: str) -> int | None:
    return next((n for n, part in enumerate(decision.parts) if any(each.name == node for each in part)), None)


def _groups(state: SearchState) -> Iterator[tuple[FusionProblem, Members]]:
    if state.legal is not None:
        yield from ((group.problem, group.members) for group in state.legal)
    else:
        yield from ((of.problem, members) for of in state.sets for members in of.groups)


def _reason(state: SearchState, tensor: str, node: str) -> Refusal:
    return state.refused.get(edge_name(tensor, node)) or refusal(tensor, node, "outputs-differ")
