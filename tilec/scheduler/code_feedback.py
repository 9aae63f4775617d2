"""Groups that code generation refuses go back to the partition, which cuts them there, once (A15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from tilec.ir.plan import Refusal
from tilec.scheduler.fusion.legalize import cheapest_pieces
from tilec.scheduler.fusion.partition import PartitionGroups
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.plan_candidates import PlanCandidate, PlanState
from tilec.scheduler.refusals import edge_name, refusal
from tilec.scheduler.state import GroupSet, LegalGroup, Members, SearchState
from tilec.scheduler.trace import ListedStep


@dataclass(frozen=True)
class CutRefused(ListedStep):
    """Groups without code, cut; `reasons` say why by their nodes, `pieces` are the nodes of what was cut before."""

    name: ClassVar[str] = "cut_refused"
    template: ClassVar[str] = (
        "a group for which the back end has no code is cut into the cheapest groups of its parts, what is refused then "
        "into its parts"
    )

    reasons: Mapping[frozenset[str], str]
    pieces: frozenset[str] = frozenset()
    partition: PartitionGroups = PartitionGroups()

    def run(self, outline: SearchState, legal: SearchState) -> SearchState:
        """The groups that are `legal` as groups to be looked at again, those without code cut."""
        sets: list[GroupSet] = []
        refused = dict(legal.refused)
        for problem in dict.fromkeys(_ById(group.problem) for group in legal.legal or ()):
            members = [each for each in legal.legal or () if each.problem is problem.of]
            cut = {group.members: self._cut(group) for group in members}
            sets.append(GroupSet(problem.of, tuple(piece for pieces in cut.values() for piece in pieces)))
            for group in members:
                if len(cut[group.members]) > 1:
                    refused |= _between(cut[group.members], problem.of, self.reasons[frozenset(group.nodes)])
        return replace(outline, sets=tuple(sets), refused=refused)

    def _cut(self, group: LegalGroup) -> list[Members]:
        """A group, or what it is cut into."""
        nodes = frozenset(group.nodes)
        if nodes not in self.reasons or len(group.members) == 1:
            return [group.members]
        if nodes & self.pieces:
            return [(number,) for number in group.members]
        return cheapest_pieces(group.members, group.problem, self.partition)


@dataclass(frozen=True, eq=False)
class _ById:
    """A problem that is equal to itself alone."""

    of: FusionProblem

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and self.of is other.of

    def __hash__(self) -> int:
        return id(self.of)


def _between(pieces: list[Members], problem: FusionProblem, why: str) -> dict[str, Refusal]:
    """Why the edges between the pieces of a group are not connected."""
    home = {number: place for place, members in enumerate(pieces) for number in members}
    edges = [(t, name, home[number], home.get(problem.home[t])) for number in home for t, name in problem.edges[number]]
    return {
        edge_name(t, name): refusal(t, name, "code", why=why)
        for t, name, reader, producer in edges
        if producer is not None and producer != reader
    }


def without_groups(
    state: PlanState, reasons: Mapping[str, str], pieces: frozenset[str]
) -> tuple[PlanState, frozenset[str]] | None:
    """The state with some groups of its plan, by name with the reason why there is no code, cut; and the nodes of all
    that was cut, of which `pieces` were before. None where none of them has parts to be cut into."""
    nodes = {group.name: frozenset(node.name for node in group.nodes) for group in state.plan.groups}
    step = CutRefused({nodes[name]: why for name, why in reasons.items()}, pieces)
    before = state.taken
    legal = [group for segment in before.legal for group in segment.legal or ()]
    cut = [
        frozenset(group.nodes) for group in legal if len(group.members) > 1 and frozenset(group.nodes) in step.reasons
    ]
    if not cut:
        return None
    outline = tuple(step.run(*pair) for pair in zip(before.outline, before.legal, strict=True))
    for pair in zip(before.legal, outline, strict=True):
        state.search.trace.record(step, *pair)
    after = PlanCandidate(before.search, before.draft, before.fusion, outline)
    candidates = tuple(after if each is before else each for each in state.candidates)
    return replace(state, candidates=candidates, best=after), pieces.union(*cut)
