"""Why a group is tiled as it is: the candidates with the terms of their predictions, what joining its parts gains,
where its bytes go (W07, W16, W17)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilec.analysis.change import Fact
from tilec.analysis.explain.edge import tensor_size
from tilec.analysis.explain.figures import Candidate, candidate, whole
from tilec.analysis.explain.replay import Replay, unit_of
from tilec.analysis.ratios import attained
from tilec.analysis.size_variants import PlanAt, VariantFacts, variant_facts
from tilec.ir.bind_plan import plan_sizes
from tilec.ir.decisions import entries, fact
from tilec.ir.expr import constant_value, operands, variables
from tilec.ir.plan import Group, Plan, Refusal, Variant
from tilec.ir.text import text_of
from tilec.lower.counts.traffic import traffic_by_tensor
from tilec.lower.lowering import lower
from tilec.scheduler.explain_search import (
    FusionProblem,
    GroupBuilder,
    LegalGroup,
    RegisterTile,
    TaskTile,
    program_objection,
    walks_of,
)

MOST = 8
"""Candidates that are listed."""

BLOCKS = 4
"""Blocks of a group whose candidates are listed; of a group with more, those of a node can be asked for."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate, whether it is the one that is taken, and what stands against its program (None: nothing, or it was
    not lowered, for a cache holds anything)."""

    chosen: bool
    candidate: Candidate
    refused: Refusal | None


@dataclass(frozen=True, slots=True)
class PartExplanation:
    """What shares registers: its nodes, what it costs by itself (picoseconds or bytes), its register tile, the cycles
    that one takes, how its first node is vectorised, and what this reads of what the level holds in a wider type."""

    nodes: tuple[str, ...]
    alone: int
    registers: Mapping[str, int]
    cycles: float
    vector: str
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WalkExplanation:
    """An order of tasks, outermost loop first, with the stripe of that loop (1: no raster), and the bytes that pass
    between the lowest level and the caches above it."""

    order: tuple[str, ...]
    stripe: int
    drawn_bytes: int


@dataclass(frozen=True, slots=True)
class BlockExplanation:
    """What a core's level holds together: its parts, what they cost by themselves and joined, the candidates for its
    tile, the taken one first, and the term that decides what it takes; orders of its tasks, the taken one first, where
    caches below see a difference."""

    level: str
    unit: str
    parts: tuple[PartExplanation, ...]
    apart: int
    joined: int
    limit: str
    candidates: tuple[Ranked, ...]
    walks: tuple[WalkExplanation, ...]


@dataclass(frozen=True, slots=True)
class Bytes:
    """What a level reads from and writes to lower ones of a tensor, beside the bytes of the tensor; 0 where those
    depend on symbols."""

    level: str
    tensor: str
    read: int
    written: int
    tensor_bytes: int


@dataclass(frozen=True, slots=True)
class AtLevel:
    """What a group moves at a level, the least that any mapping, the best known one, and the best known one in tasks
    for all units move there (None: not known), and its footprint; None where they depend on symbols."""

    level: str
    moved: int | None
    least: int | None
    known: int | None
    parallel: int | None
    footprint: int | None


@dataclass(frozen=True, slots=True)
class CodeExplanation:
    """What the plan decides of the code of a group: the thing, the node, tensor or level that it is about, the
    decision."""

    kind: str
    subject: str
    fact: Fact


@dataclass(frozen=True, slots=True)
class GroupExplanation:
    """Why a group is as it is; `number` counts from 1, `refused` are its edges to other groups.

    Of a plan with symbols figures are at `sizes`, parts and candidates at those that it is made for; `variants` are
    those of the group, `flops` and `footprint` (by level) expressions.
    """

    number: int
    name: str
    nodes: tuple[str, ...]
    operators: str
    picoseconds: int
    connected: Mapping[str, str]
    refused: tuple[Refusal, ...]
    blocks: tuple[BlockExplanation, ...]
    untold: int
    levels: tuple[AtLevel, ...]
    bytes: tuple[Bytes, ...]
    code: tuple[CodeExplanation, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    made_for: Mapping[str, int] = field(default_factory=dict)
    variants: tuple[VariantFacts, ...] = ()
    flops: str = ""
    footprint: Mapping[str, str] = field(default_factory=dict)


def explain_group(replay: Replay, plan: Plan, group: Group, at: PlanAt | None = None) -> GroupExplanation:
    """The explanation of a group of a plan that the search comes to again; figures are those of `plan`, of one with
    symbols those `at` some sizes."""
    if at is not None and plan.symbols:
        number = plan.groups.index(group)
        there = explain_group(replay, at.plan, at.plan.groups[number])
        varying = {level: size for level, size in group.cost.footprint.items() if variables(size)}
        return replace(
            there,
            sizes=dict(at.sizes),
            made_for=plan_sizes(plan),
            variants=variant_facts(group, at.sizes),
            flops=text_of(group.cost.flops),
            footprint={level: text_of(size) for level, size in varying.items()},
        )
    results = {node.name for node in group.nodes}
    edges = sorted(replay.refusals.items())
    blocks = [block for final, block in replay.chosen.items() if final in results]
    return GroupExplanation(
        plan.groups.index(group) + 1,
        group.name,
        tuple(node.name for node in group.nodes),
        " ".join(dict.fromkeys(node.op or "(none)" for node in group.nodes)),
        group.cost.picoseconds,
        dict(group.connect),
        tuple(reason for e, reason in edges if results & set(e.split("->"))),
        tuple(block_explanation(*block) for block in blocks) if len(blocks) <= BLOCKS else (),
        len(blocks) if len(blocks) > BLOCKS else 0,
        tuple(at_levels(group, plan)),
        tuple(_moved(group, plan)),
        tuple(_code(group.variants[0])),
    )


def _code(variant: Variant) -> Iterator[CodeExplanation]:
    """What a variant decides of its code, what is about all of it first."""
    decided = [entry for entry in entries(variant) if entry.decision.effect == "code"]
    for entry in sorted(decided, key=lambda entry: (bool(entry.subject), entry.decision.kind)):
        yield CodeExplanation(entry.decision.kind, entry.subject or entry.level, fact(entry))


def block_explanation(group: LegalGroup, builder: GroupBuilder) -> BlockExplanation:
    """The explanation of what a core's level holds together."""
    problem, members, tile = group.problem, group.members, group.tiles[0]
    ranked = _ranked(problem, members, tile, builder)
    return BlockExplanation(
        problem.target.levels[problem.target.core].name,
        unit_of(problem.objective),
        tuple(_part(problem, number, register) for number, register in zip(members, tile.registers, strict=True)),
        whole(sum(problem.singles[number].objective for number in members), problem),
        whole(tile.objective, problem),
        _limit(ranked[0].candidate, problem),
        ranked,
        _walks(problem, members, tile),
    )


def _walks(problem: FusionProblem, members: tuple[int, ...], tile: TaskTile) -> tuple[WalkExplanation, ...]:
    found = sorted(walks_of(problem, members, tile).items(), key=lambda item: item[1])
    distinct = {round(size): walk for walk, size in reversed(found)}
    every = tuple(WalkExplanation(walk.order, walk.stripe, size) for size, walk in sorted(distinct.items()))
    return every[:MOST] if len(every) > 1 else ()


def _part(problem: FusionProblem, number: int, register: RegisterTile) -> PartExplanation:
    vector = register.vector
    along = f" along {vector.iterator}" if vector.iterator else ""
    return PartExplanation(
        tuple(node.name for node in problem.parts[number]),
        whole(problem.singles[number].objective, problem),
        dict(register.sizes),
        register.cycles,
        f"{vector.kind}{along}",
        held_operands(problem, number, register),
    )


def held_operands(problem: FusionProblem, number: int, register: RegisterTile) -> tuple[str, ...]:
    """Operands of a part's first node that a core's level holds in the type in which half precision is computed."""
    read = operands(problem.parts[number][0].expr)
    return tuple(read[n] for n in register.held)


def _ranked(
    problem: FusionProblem, members: tuple[int, ...], tile: TaskTile, builder: GroupBuilder
) -> tuple[Ranked, ...]:
    """The tile that is taken, then what else the search likes, best first."""
    others = [other for other in problem.core_tiles(members, MOST) if _key(other) != _key(tile)]
    level = problem.target.levels[problem.target.core]
    lowered = (level.managed == "explicit" or len(members) > 1) and not problem.graph.symbols
    return tuple(
        Ranked(
            each is tile,
            candidate(problem, members, each),
            program_objection(problem, members, each, builder) if lowered else None,
        )
        for each in [tile, *others[: MOST - 1]]
    )


def _key(tile: TaskTile) -> object:
    steps = {node: dict(of) for node, of in tile.steps.items()}
    return dict(tile.sizes), steps, [dict(register.sizes) for register in tile.registers]


def _limit(tile: Candidate, problem: FusionProblem) -> str:
    """The largest term of a prediction."""
    of, target = tile.prediction, problem.target
    if of.drawn > of.span:
        return f"bandwidth of {target.levels[target.core - 1].name}"
    work = {
        "computing": of.compute,
        f"filling {target.levels[target.core].name}": of.stream,
        "copies": of.copy,
        "latency": of.wait,
    }
    most = max(work, key=lambda name: work[name])
    return "the launch" if of.launch > of.span else most


def at_levels(group: Group, plan: Plan) -> list[AtLevel]:
    """What a group moves and holds at every level above the lowest, lowest first."""
    levels: list[AtLevel] = []
    for level in plan.levels[1:]:
        sides = [table[level.name] for table in (group.cost.read, group.cost.written) if level.name in table]
        sizes = [constant_value(size) for size in sides]
        moved = sum(size for size in sizes if size is not None) if sizes and None not in sizes else None
        proved, held = group.bounds.get(level.name), group.cost.footprint.get(level.name)
        if moved is not None or held is not None:
            footprint = constant_value(held) if held is not None else None
            if proved is None:
                levels.append(AtLevel(level.name, moved, None, None, None, footprint))
            else:
                best = attained(proved, moved or 0)
                levels.append(AtLevel(level.name, moved, best.least, best.known, best.parallel, footprint))
    return levels


def _moved(group: Group, plan: Plan) -> list[Bytes]:
    """Bytes by level and tensor, most first; none while sizes are symbols."""
    if plan.symbols:
        return []
    ranks: Sequence[str] = [level.name for level in plan.levels]
    moved = traffic_by_tensor(lower(group, group.variants[0], plan))
    rows = [
        Bytes(level, tensor, each.read, each.written, tensor_size(plan, tensor))
        for (level, tensor), each in moved.items()
        if each.read or each.written
    ]
    return sorted(rows, key=lambda row: (ranks.index(row.level), -(row.read + row.written), row.tensor))
