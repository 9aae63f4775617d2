"""What every stage of the search says of an edge, in the order in which the stages look at it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tilec.analysis.explain.figures import Join
from tilec.analysis.explain.memory_levels import LevelJoin
from tilec.analysis.explain.replay import PartitionedParts, Replay
from tilec.ir.plan import Refusal
from tilec.scheduler.fusion.group_costs import cost_numbers
from tilec.scheduler.fusion.legalize import illegality
from tilec.scheduler.refusals import edge_name, refusal
from tilec.scheduler.segment_schedule import SegmentSchedule

RULES = {
    "passes": "a movement is composed into its reader unless that puts a choice, // or % into a reduction (compose)",
    "registers": "an elementwise node shares the registers of a producer that it reads point by point (fuse)",
    "pieces": "what shares registers falls apart where its pieces are predicted to take less than 0.99 of it (cut)",
    "tier": "sets of parts are joined at a level as long as that is predicted to cost less (tier_partition)",
    "core": "groups are joined, and nodes moved between them, where that is predicted to take less than 0.99 of what "
    "it takes as it is (partition, reconsider)",
    "program": "a group is kept if a tile program of it is legal and fits the level (exact)",
    "plans": "the whole plan is compared with those with less fusion, and the one that costs least is taken (rivals)",
    "calls": "groups run before or after a call of onnxruntime, none holds it",
}
"""Stage -> the rule that it goes by, and the module that has it."""


@dataclass(frozen=True, slots=True)
class StepVerdict:
    """What one stage says: at which level, why the edge is not connected there (None: it is), by which rule."""

    stage: str
    level: str
    reason: Refusal | None
    rule: str


def step_verdicts(
    replay: Replay, home: PartitionedParts | None, below: LevelJoin | None, tensor: str, node: str
) -> Iterator[StepVerdict]:
    """The stages that had a say."""
    name = edge_name(tensor, node)
    own = original(home, node)
    segment = replay.segment(tensor, own)
    if segment is None:
        yield _look("calls", "", None)
        return
    draft, target = replay.fullest.draft, replay.target
    if name in draft.refused:
        yield _look("passes", "", draft.refused[name])
    yield from _registers(segment, target.top, tensor, own)
    if below is not None:
        yield _look("tier", below.level, Refusal(name, below.reason.code, below.reason.numbers))
    elif home is not None and home.atoms.home[tensor] != home.atoms.home[node]:
        yield from _core(replay, home, tensor, node)
    best, fullest = replay.best, replay.fullest
    if best is not fullest and any(name in group.connect for group in fullest.outline.plan.groups):
        yield _look("plans", "", refusal(tensor, node, "slower", joined=fullest.cost, apart=best.cost))


def original(home: PartitionedParts | None, node: str) -> str:
    """The node of the graph that a copy stands for, where reductions that share a loop have copies; else itself."""
    chain = home.atoms.chain if home is not None else None
    return chain.copies.get(node, node) if chain is not None else node


def _registers(segment: SegmentSchedule, top: str, tensor: str, node: str) -> Iterator[StepVerdict]:
    """What shares registers, and what is cut of it."""
    parts = segment.fused.parts
    home = {each.name: number for number, part in enumerate(parts) for each in part}
    if home.get(tensor) != home.get(node):
        found = segment.fused.refused.get(edge_name(tensor, node))
        yield _look("registers", top, found or refusal(tensor, node, "outputs-differ"))
        return
    yield _look("registers", top, None)
    if segment.atoms is None:
        return
    atoms = segment.atoms
    own = {each.name for each in parts[home[node]]}
    pieces = [number for number, part in enumerate(atoms.parts) if part[-1].name in own]
    if atoms.home[tensor] != atoms.home[node]:
        whole = replace(atoms, parts=parts).core_tiles((home[node],))[0].objective
        apart = sum(atoms.singles[number].objective for number in pieces)
        yield _look("pieces", top, refusal(tensor, node, "slower", **cost_numbers(whole, apart, atoms)))


def _core(replay: Replay, home: PartitionedParts, tensor: str, node: str) -> Iterator[StepVerdict]:
    """What groups come to at a core's level, and whether programs come of them."""
    if replay.fullest.fusion != "full":
        return
    name, level = edge_name(tensor, node), replay.target.core_level
    producer = home.group(tensor)
    if producer != home.group(node):
        yield _look("core", level, home.grouping.refused[name])
        return
    yield _look("core", level, None)
    if not any(name in group.connect for group in replay.fullest.outline.plan.groups):
        found = illegality(producer, home.atoms, replay.fullest.outline.segments[0].builder)
        yield _look("program", level, Refusal(name, found.code, found.numbers))


def join_of(replay: Replay, home: PartitionedParts, tensor: str, node: str) -> Join | None:
    """The groups beside an edge as one: those that `partition` compares, the single parts of a group that fell apart,
    or the two halves of a group at an edge that it connects; None inside of a part."""
    atoms = home.atoms
    producer, reader = (atoms.home[each] for each in (tensor, node))
    if producer == reader:
        return None
    one, other = home.group(tensor), home.group(node)
    if one != other:
        return Join(atoms, (one, other))
    if any(edge_name(tensor, node) in group.connect for group in replay.plan.groups):
        before = _leading_to(home, producer, one)
        return Join(atoms, (before, tuple(n for n in one if n not in before)))
    return Join(atoms, tuple((n,) for n in one))


def _leading_to(home: PartitionedParts, producer: int, members: tuple[int, ...]) -> tuple[int, ...]:
    """The parts of a group that a part needs, with itself."""
    found, waiting = {producer}, [producer]
    while waiting:
        new = home.atoms.needs[waiting.pop()] & set(members) - found
        found |= new
        waiting += new
    return tuple(sorted(found))


def _look(stage: str, level: str, reason: Refusal | None) -> StepVerdict:
    return StepVerdict(stage, level, reason, RULES[stage])
