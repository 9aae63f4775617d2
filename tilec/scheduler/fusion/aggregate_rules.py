"""Groups by aggregation rules instead of predicted costs: the step of `schedule.fusion: apollo` (A06, A08)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from tilec.ir.expr import operands
from tilec.ir.graph import Node
from tilec.ir.plan import Refusal
from tilec.scheduler.fusion.aggregate import Areas, aggregate
from tilec.scheduler.fusion.group_costs import unaligned_results
from tilec.scheduler.fusion.rule_table import apollo_table
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import execution_order, in_order, with_one_final
from tilec.scheduler.refusals import edge_name, refusal
from tilec.scheduler.search_cache import Part
from tilec.scheduler.state import GroupSet, Members, SearchState, SearchStep
from tilec.scheduler.trace import Trace


@dataclass(frozen=True)
class AggregateRules(SearchStep):
    """Areas that rules join as groups."""

    name: ClassVar[str] = "aggregate_rules"
    template: ClassVar[str] = (
        "with fusion apollo, areas of nodes join neighbours by a table of rules until none applies; an area whose "
        "results cannot be tiled together is cut"
    )

    def applies(self, state: SearchState) -> bool:
        """Where rules decide."""
        return super().applies(state) and state.options.fusion == "apollo"

    def run(self, state: SearchState, _trace: Trace) -> SearchState:
        """The areas as groups of what shares registers in them."""
        problem = state.problem
        nodes = sorted((n for part in problem.parts for n in part), key=_places(problem).__getitem__)
        areas = aggregate(nodes, problem.graph, problem.numbers, apollo_table())
        cut = replace(problem, parts=_cut_parts(problem, areas))
        groups, refused = _groups(cut, areas)
        return replace(state, problem=cut, sets=(GroupSet(cut, groups),), refused=_reasons(cut, groups, refused))


def _places(problem: FusionProblem) -> dict[Node, int]:
    return {node: place for place, node in enumerate(problem.graph.nodes)}


def _cut_parts(problem: FusionProblem, areas: Areas) -> tuple[Part, ...]:
    """The parts, each cut where it lies in several areas."""
    pieces: dict[tuple[int, int], list[Node]] = {}
    for number, part in enumerate(problem.parts):
        for node in part:
            pieces.setdefault((number, areas.home[node.name]), []).append(node)
    reads = {node.name: operands(node.expr) for part in problem.parts for node in part}
    places = {node.name: place for place, node in enumerate(problem.graph.nodes)}
    return in_order(with_one_final(list(pieces.values()), reads)[0], places, reads)


def _groups(problem: FusionProblem, areas: Areas) -> tuple[tuple[Members, ...], dict[str, Refusal]]:
    """Areas as groups in execution order, and why edges inside of an area are not connected after all."""
    inside: dict[int, list[int]] = {}
    for number, part in enumerate(problem.parts):
        inside.setdefault(areas.home[part[0].name], []).append(number)
    groups: list[Members] = []
    refused: dict[str, Refusal] = {}
    for members in map(tuple, inside.values()):
        reason = unaligned_results(problem, members) if len(members) > 1 else None
        groups += [members] if reason is None else _with_one_result(problem, members)
        if reason is not None:
            edges = [edge_name(*edge) for n in members for edge in problem.edges[n] if problem.home[edge[0]] in members]
            refused |= {edge: replace(reason, edge=edge) for edge in edges}
    home = {n: place for place, members in enumerate(groups) for n in members}
    needs = [{home[m] for n in members for m in problem.needs[n]} - {g} for g, members in enumerate(groups)]
    return tuple(groups[g] for g in execution_order(needs, [members[-1] for members in groups])), refused


def _with_one_result(problem: FusionProblem, members: Members) -> list[Members]:
    """The parts of an area in groups, each what its last part needs and no group before it holds."""
    groups: list[Members] = []
    left = set(members)
    for last in (n for n in members if not any(n in problem.needs[m] for m in members)):
        wanted, waiting = {last}, [last]
        while waiting:
            new = (problem.needs[waiting.pop()] & left) - wanted
            wanted |= new
            waiting += new
        left -= wanted
        groups.append(tuple(sorted(wanted)))
    return groups


def _reasons(problem: FusionProblem, groups: Sequence[Members], refused: Mapping[str, Refusal]) -> dict[str, Refusal]:
    """Why edges between groups are not connected: no rule joins them, or their area was cut."""
    home = {n: g for g, members in enumerate(groups) for n in members}
    reasons: dict[str, Refusal] = {}
    for reader, edges in enumerate(problem.edges):
        for tensor, name in edges:
            edge = edge_name(tensor, name)
            if home[problem.home[tensor]] != home[reader]:
                reasons[edge] = refused.get(edge) or refusal(tensor, name, "no-rule")
    return reasons
