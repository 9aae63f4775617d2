"""The search as explanations see it: run again with a trace, and asked for figures by the functions that it decides by.

The one module through which `tilec.analysis.explain` reaches the scheduler (beside `refusals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tilec.ir.graph import Graph
from tilec.ir.plan import Plan, Refusal
from tilec.ir.verify.program import check_program
from tilec.lower.checks.check_plan import overflows
from tilec.lower.checks.plan_errors import PlanError
from tilec.lower.lowering import lower
from tilec.scheduler.building.code_decisions import Decide
from tilec.scheduler.building.group_builder import GroupBuilder
from tilec.scheduler.edge_verdict import (
    EdgeVerdict,
    copies_of,
    edge_verdict,
    joint_group,
    last_core,
    last_decision,
    lineage,
)
from tilec.scheduler.fusion.aggregate import aggregate
from tilec.scheduler.fusion.group_costs import PICO, GroupCosts, roofline
from tilec.scheduler.fusion.legalize import single_group_plan
from tilec.scheduler.fusion.partition import PartitionGroups
from tilec.scheduler.fusion.rule_table import apollo_table
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import computed_nodes
from tilec.scheduler.memory_levels.hierarchical_search import level_problem
from tilec.scheduler.memory_levels.incremental_cost import LevelCost
from tilec.scheduler.memory_levels.interval_costs import IntervalCosts
from tilec.scheduler.memory_levels.level_partition import joining
from tilec.scheduler.memory_levels.level_problem import LevelProblem
from tilec.scheduler.plan_candidates import PlanCandidate, PlanState, cheapest
from tilec.scheduler.refusals import refusal
from tilec.scheduler.schedule import plan_with_code, search_plan
from tilec.scheduler.state import GroupSet, LegalGroup, LevelDecision, Members, SearchState, SearchStep
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.cache_reuse import TaskWalk
from tilec.scheduler.tiling.cost_model import CostTerms, cost_terms, drawn_by_walk
from tilec.scheduler.tiling.loop_order import task_order
from tilec.scheduler.tiling.register_tiles import RegisterTile
from tilec.scheduler.tiling.task_tiles import FirstLook, TaskTile, task_tiles
from tilec.scheduler.trace import RecordedTrace, Step, TraceEntry
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import ScheduleOptions

__all__ = [
    "PICO",
    "CostTerms",
    "Decide",
    "EdgeVerdict",
    "FirstLook",
    "FusionProblem",
    "GroupBuilder",
    "GroupSet",
    "IntervalCosts",
    "LegalGroup",
    "LevelCost",
    "LevelDecision",
    "LevelProblem",
    "Members",
    "PartitionGroups",
    "PlanCandidate",
    "PlanState",
    "RecordedTrace",
    "RegisterTile",
    "SearchState",
    "SearchStep",
    "Step",
    "TargetModel",
    "TaskTile",
    "TraceEntry",
    "apollo_rules",
    "cheapest",
    "copies_of",
    "cost_terms_of",
    "costs_of",
    "counted_plan",
    "edge_verdict",
    "joining",
    "joint_group",
    "last_core",
    "last_decision",
    "lineage",
    "partition_options",
    "problem_of_level",
    "program_objection",
    "register_options",
    "replay_search",
    "roofline",
    "walks_of",
    "with_parts_alone",
]


def replay_search(graph: Graph, device: DeviceSpec, options: ScheduleOptions) -> tuple[PlanState, RecordedTrace]:
    """The search run again without a tuner, and its trace, which grows as candidates are asked for their tiles and
    groups. Raises what `schedule` raises."""
    trace = RecordedTrace()
    return search_plan(graph, device, options, trace), trace


def counted_plan(state: PlanState, decide: Decide | None = None) -> Plan:
    """The plan that is taken, its traffic counted, with the decisions about code of a back end's rules."""
    return plan_with_code(state, decide)


def partition_options(steps: Sequence[object]) -> PartitionGroups:
    """By which thresholds groups are joined at a core's level."""
    return next((step for step in steps if isinstance(step, PartitionGroups)), PartitionGroups())


def apollo_rules(candidate: PlanCandidate) -> dict[str, str]:
    """Edge -> the rule by which `fusion: apollo` joins its ends in the graph of a whole plan; no entry where none
    does."""
    rules: dict[str, str] = {}
    for state in candidate.outline:
        graph = state.problem.graph
        rules |= aggregate(computed_nodes(graph), graph, state.problem.numbers, apollo_table()).rules
    return rules


def costs_of(problem: FusionProblem, members: Members, gain: float) -> tuple[float | Refusal, float | Refusal]:
    """The lower bound of a group's cost by bounds and a few candidates, and its predicted cost; or why it may not be
    one.  The edge of a refusal is empty."""
    costs = GroupCosts(problem, gain)
    return costs.lower_bound(members), costs.cost(members)


def cost_terms_of(problem: FusionProblem, members: Sequence[int], tile: TaskTile) -> CostTerms:
    """The terms of the prediction for one tile of a group, by the function that the search ranks candidates with."""
    tiling = problem.tiling_problem(tuple(members), problem.leaving(members), tile.registers)
    whole = {i: tiling.extent(i) for i in tiling.group.final.spatial}
    sizes = {i: np.asarray(n, np.int64) for i, n in {**whole, **tile.sizes}.items()}
    steps = {node: {i: np.asarray(n, np.int64) for i, n in of.items()} for node, of in tile.steps.items()}
    return cost_terms(tiling, sizes, steps, stages=tile.stages)


def walks_of(problem: FusionProblem, members: Sequence[int], tile: TaskTile) -> dict[TaskWalk, float]:
    """Orders of the tasks of a tile, the one first that its loops have by themselves, and the bytes from and to the
    lowest level in each; none where the order is that of hardware that reads ahead."""
    tiling = problem.tiling_problem(tuple(members), problem.leaving(members), tile.registers)
    if tiling.target.is_cached or not tiling.target.cache:
        return {}
    sizes = {i: np.asarray(n, np.int64) for i, n in tile.sizes.items()}
    steps = {node: {i: np.asarray(n, np.int64) for i, n in of.items()} for node, of in tile.steps.items()}
    return drawn_by_walk(tiling, sizes, steps, TaskWalk(task_order(tiling, tile.sizes)))


def register_options(problem: FusionProblem, number: int) -> tuple[tuple[RegisterTile, TaskTile], ...]:
    """The register tiles of a part by itself, each with the best core tile for it, as the search compares them."""
    outputs = problem.leaving((number,))
    return tuple(
        (tile, task_tiles(problem.tiling_problem((number,), outputs, [tile]), 1)[0]) for tile in problem.tiles(number)
    )


def program_objection(
    problem: FusionProblem, members: Members, tile: TaskTile, builder: GroupBuilder
) -> Refusal | None:
    """Why no legal program comes of a tile, or the level that it exceeds; None where nothing stands against it."""
    plan = single_group_plan(members, tile, problem, builder)
    (group,) = plan.groups
    try:
        program = lower(group, group.variants[0], plan)
    except PlanError as error:
        return error.refusal
    shapes = {name: tensor.shape for name, tensor in plan.tensors.items()}
    if len(members) > 1 and check_program(program, shapes):
        return refusal("", "", "illegal", parts=len(members))
    return next((replace(over, edge="") for over in overflows(program)), None)


def problem_of_level(state: SearchState, decision: LevelDecision) -> LevelProblem:
    """The problem that a decision at a level below a core's was taken on."""
    return level_problem(state, decision.parts, decision.level, decision.extents, decision.share)


def with_parts_alone(problem: FusionProblem, members: Members) -> FusionProblem:
    """Some parts among no others, so that nothing else is looked at; decisions on them are forgotten, for a target
    that differs."""
    inside = set(members)
    beyond = {t for n, edges in enumerate(problem.edges) if n not in inside for t, _ in edges}
    results = {node.name for n in members for node in problem.parts[n]}
    return replace(
        problem,
        parts=tuple(problem.parts[n] for n in members),
        outputs=problem.outputs | (beyond & results),
        chain=problem.chain_of(members),
        cache=problem.cache.without_decisions(),
    )
