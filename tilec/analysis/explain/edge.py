"""Why an edge is connected at a level, or why it is not: the verdicts of the search with its figures (W15, W16)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf

from tilec.analysis.explain.figures import Candidate, Join, candidate, whole
from tilec.analysis.explain.memory_levels import LevelJoin, level_join
from tilec.analysis.explain.relax import Relaxation, relaxations
from tilec.analysis.explain.replay import Replay, unit_of
from tilec.analysis.explain.search_steps import StepVerdict, join_of, step_verdicts
from tilec.ir.algebra import simplify
from tilec.ir.expr import constant_value, operands
from tilec.ir.plan import Group, Plan, Refusal
from tilec.ir.types import tensor_bytes
from tilec.scheduler.refusals import edge_name


@dataclass(frozen=True, slots=True)
class Side:
    """One of two groups of parts beside an edge: its nodes and the best tile that a core's level may hold of it."""

    nodes: tuple[str, ...]
    tile: Candidate


@dataclass(frozen=True, slots=True)
class Joined:
    """Two groups of parts at a core's level, and both as one.

    apart, pieces   what they cost as they are, and what all their parts cost by themselves
    wanted          what the joined group has to stay below
    bound, rough    what it cannot fall short of, and about what a first look finds (None: nothing fits)
    hoped           what a closer look finds at best after that
    least_bytes     bytes that the level holds at least; `capacity_bytes` is what it may, of a cache a part
    best            the best tile, `reason` why the joined group is none or does not pay (None: it does)
    """

    level: str
    unit: str
    sides: tuple[Side, ...]
    apart: int
    pieces: int
    wanted: int
    bound: int
    rough: int | None
    hoped: int | None
    least_bytes: int
    capacity_bytes: int | None
    best: Candidate | None
    reason: Refusal | None


@dataclass(frozen=True, slots=True)
class EdgeExplanation:
    """Why an edge is as it is.

    connected   the level at which it is connected; None where it is not, and `reason` says why
    decided_by  the step of the search whose verdict the plan has
    steps       the verdicts of the steps that changed it, in order
    joined      what joining comes to at a core's level, `below` at a level below it
    path        groups on another way from producer to reader
    apollo_rule the rule by which `fusion: apollo` joins the ends; empty: none does
    relaxations what would have to be otherwise, the cheapest first
    """

    edge: str
    bytes: int
    producer: str
    reader: str
    connected: str | None
    reason: Refusal | None
    decided_by: str
    steps: tuple[StepVerdict, ...]
    joined: Joined | None
    below: LevelJoin | None
    path: tuple[str, ...]
    apollo_rule: str
    relaxations: tuple[Relaxation, ...]


def explain_edge(replay: Replay, tensor: str, node: str, relax: bool = True) -> EdgeExplanation:
    """The explanation of an edge of the plan that the search comes to; both ends are nodes of its groups. Without
    `relax` it leaves out what would have to be otherwise at a core's level, which takes longest."""
    name, plan = edge_name(tensor, node), replay.plan
    producer, reader = group_with(plan, tensor), group_with(plan, node)
    level = producer.connect.get(name) if producer is reader else None
    reason = None if level is not None else replay.refusals.get(name)
    below = level_join(replay, tensor, node) if level is None else None
    home = replay.home(tensor, node)
    steps = tuple(step_verdicts(replay, tensor, node))
    join = join_of(replay, home, tensor, node) if home is not None and below is None else None
    tried = relax and reason is not None and reason.code in ("slower", "capacity")
    return EdgeExplanation(
        name,
        tensor_size(plan, tensor),
        producer.name,
        reader.name,
        level,
        reason,
        _decided(steps, level, reason),
        steps,
        _joined(join) if join is not None else None,
        below,
        _path(replay.fullest.plan, producer.name, reader.name) if reason is not None else (),
        replay.rules.get(name, ""),
        below.relaxations if below is not None else relaxations(join) if tried and join is not None else (),
    )


def group_with(plan: Plan, node: str) -> Group:
    """The group that holds a node. Raises KeyError for none."""
    for group in plan.groups:
        if any(each.name == node for each in group.nodes):
            return group
    raise KeyError(node)


def tensor_size(plan: Plan, tensor: str) -> int:
    """Bytes of a tensor; 0 where they depend on symbols."""
    of = plan.tensors[tensor]
    return constant_value(simplify(tensor_bytes(of.ttype, of.shape))) or 0


def _decided(steps: tuple[StepVerdict, ...], level: str | None, reason: Refusal | None) -> str:
    """The step whose verdict the plan has: the last one that connects the edge, or gives that very reason."""
    for verdict in reversed(steps):
        if verdict.reason == reason and (level is None or verdict.level == level):
            return verdict.step
    return steps[-1].step if steps else ""


def _joined(join: Join) -> Joined:
    problem = join.problem
    level = problem.target.levels[problem.target.core]
    held, rough, hoped = join.look
    return Joined(
        level.name,
        unit_of(problem.objective),
        tuple(_side(join, members) for members in join.groups),
        whole(join.apart, problem),
        whole(join.pieces, problem),
        whole(join.wanted, problem),
        whole(join.bound, problem),
        whole(rough, problem) if rough < inf else None,
        whole(hoped, problem) if hoped < inf else None,
        held,
        problem.target.capacity if level.capacity is not None else None,
        candidate(problem, join.members, join.tile),
        join.verdict,
    )


def _side(join: Join, members: tuple[int, ...]) -> Side:
    nodes = tuple(node.name for number in members for node in join.problem.parts[number])
    return Side(nodes, candidate(join.problem, members, join.problem.core_tiles(members)[0]))


def _path(plan: Plan, producer: str, reader: str) -> tuple[str, ...]:
    """Groups on the shortest other way from one group to another, both included; empty where there is none."""
    home = {node.name: group.name for group in plan.groups for node in group.nodes}
    read = {
        group.name: {home[t] for node in group.nodes for t in operands(node.expr) if t in home} - {group.name}
        for group in plan.groups
    }
    first = sorted(read.get(reader, set()) - {producer})
    waiting: deque[tuple[str, tuple[str, ...]]] = deque((each, (each, reader)) for each in first)
    visited: set[str] = set()
    while waiting:
        here, way = waiting.popleft()
        if here == producer:
            return way
        if here not in visited:
            visited.add(here)
            waiting += ((each, (each, *way)) for each in sorted(read[here]))
    return ()
