"""What a step changed, as lines of text: the difference of the state before it and the one after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tilec.errors import several
from tilec.ir.plan import Plan
from tilec.scheduler.plan_candidates import PlanCandidate, PlanState
from tilec.scheduler.shared_launches import LaunchDecision
from tilec.scheduler.state import GroupSet, LevelDecision, Members, SearchState
from tilec.scheduler.tiling.task_tiles import TaskTile

ROWS = 12
"""Lines of one kind that are written."""

NODES = 8
"""Nodes that are named of many."""

Names = tuple[str, ...]


def whole_plan(state: SearchState | PlanState | LaunchDecision) -> str:
    """The whole plan that a state belongs to, and the level in whose tile it is searched; empty for all plans."""
    if isinstance(state, PlanState | LaunchDecision):
        return ""
    return state.label + (f", in {state.level}" if state.level else "")


def changes(before: SearchState | PlanState | Plan, after: SearchState | PlanState | LaunchDecision) -> list[str]:
    """Parts fused and split, groups joined and separated with predicted times, decisions at levels, tiles that were
    replaced, groups that were built, plans that were compared, edges that are refused now; no lines where the states
    agree."""
    if isinstance(after, LaunchDecision):
        return [*_few(_shared(after)), *_few(_not_shared(after))]
    if not isinstance(before, SearchState) or isinstance(after, PlanState):
        return _few(_compared(after)) if isinstance(after, PlanState) else []
    return [
        *_few(_parts(before, after)),
        *_few(_groups(before, after)),
        *_few(_level(after, each) for each in after.levels[len(before.levels) :]),
        *_few(_tiles(before, after)),
        *_few(_built(before, after)),
        *_refused(before, after),
    ]


def _shared(decision: LaunchDecision) -> Iterator[str]:
    """Groups that share a launch."""
    alone = {group.name: group.cost.picoseconds for group in decision.plan.groups}
    for each in decision.plan.launches:
        apart = sum(alone[name] for name in each.groups)
        yield f"{_some(each.groups)} share a launch: {_time(each.picoseconds / 1e12)}, {_time(apart / 1e12)} apart"


def _not_shared(decision: LaunchDecision) -> Iterator[str]:
    """Groups that do not, though they could."""
    for each in decision.apart:
        times = f"{_time(each.joined / 1e12)} joined, {_time(each.apart / 1e12)} apart"
        yield f"{_some(each.groups)} do not: {times}"


def _few(lines: Iterable[str]) -> list[str]:
    rows = list(lines)
    return rows[:ROWS] + ([f"and {len(rows) - ROWS} more"] if len(rows) > ROWS else [])


def _parts(before: SearchState, after: SearchState) -> Iterator[str]:
    """Parts of several nodes where there were none; else parts that were split, and what they fell into."""
    new, old = _part_names(after), _part_names(before)
    if not old:
        yield from (f"fused {_some(names)}" for names in new if len(names) > 1)
        return
    for names in old:
        pieces = [piece for piece in new if set(piece) < set(names)]
        if pieces:
            yield f"split {' | '.join(map(_some, pieces))}"


def _part_names(state: SearchState) -> list[Names]:
    return [tuple(node.name for node in part) for part in state.problem.parts]


def _groups(before: SearchState, after: SearchState) -> Iterator[str]:
    """Groups of several parts that were not there, their predicted time, and that of the groups their nodes were in."""
    if after.sets is before.sets or not before.sets:
        return
    old = {_names(of, members): _seconds(of, members) for of in before.sets for members in of.groups}
    home = {name: names for names in old for name in names}
    for of in after.sets:
        for members in of.groups:
            names, seconds = _names(of, members), _seconds(of, members)
            sources = dict.fromkeys(home[name] for name in names if name in home)
            apart = sum(old[source] for source in sources)
            if len(members) > 1 and (names not in old or seconds != apart):
                does = "joined" if len(sources) > 1 else "changed"
                yield f"{does} {_some(names)}: {_time(seconds)}, {_time(apart)} before"


def _names(of: GroupSet, members: Members) -> Names:
    return tuple(node.name for number in members for node in of.problem.parts[number])


def _seconds(of: GroupSet, members: Members) -> float:
    return of.problem.core_tiles(members)[0].seconds


def _level(state: SearchState, decision: LevelDecision) -> str:
    """A decision at a level below a core's."""
    name = state.problem.target.levels[decision.level].name
    groups = [
        _some([node.name for number in group.members for node in decision.parts[number]]) + f" {_time(group.seconds)}"
        for group in decision.groups[:ROWS]
    ]
    share = f" with {decision.share:.0%} of it" if decision.share < 1 else ""
    return f"{name} holds{share}: {'; '.join(groups)}"


def _tiles(before: SearchState, after: SearchState) -> Iterator[str]:
    """Groups that fell apart, and tiles that are not the ones that were predicted best, or were taken before."""
    if after.legal is None or after.legal is before.legal:
        return
    legal = {group.nodes: group for group in after.legal}
    for of in before.sets:
        for members in of.groups:
            if before.legal is None and _names(of, members) not in legal:
                yield f"fell apart: {_some(_names(of, members))}"
    taken = {group.nodes: group for group in before.legal or ()}
    for names, group in legal.items():
        old = taken[names].tiles[0] if names in taken else group.problem.core_tiles(group.members)[0]
        if _tile(old) != _tile(group.tiles[0]):
            yield f"tile of {_some(names)}: {_tile(group.tiles[0])} instead of {_tile(old)}"


def _tile(tile: TaskTile) -> str:
    """`m=8 n=64, k by 32 in node`."""
    sizes = " ".join(f"{i}={n}" for i, n in tile.sizes.items()) or "whole"
    steps = "".join(f", {i} by {n} in {node}" for node, of in tile.steps.items() for i, n in of.items())
    registers = "".join(
        f", registers {' '.join(f'{i}={n}' for i, n in each.sizes.items())}" for each in tile.registers if each.sizes
    )
    return f"{sizes}{steps}{registers}"


def _built(before: SearchState, after: SearchState) -> Iterator[str]:
    if after.groups is not None and before.groups is None:
        packs = len(after.builder.packs)
        packed = f", {several(packs, 'weight')} packed" if packs else ""
        yield f"built {several(len(after.groups), 'group')}, {_time(sum(after.seconds))}{packed}"


def _refused(before: SearchState, after: SearchState) -> Iterator[str]:
    """Edges that have a new reason, counted by it."""
    new = Counter(reason.code for edge, reason in after.refused.items() if before.refused.get(edge) != reason)
    if new:
        yield "refused edges: " + ", ".join(f"{code} {count}" for code, count in sorted(new.items()))


def _compared(state: PlanState) -> Iterator[str]:
    for each in state.candidates:
        yield f"{each.outline[0].label}: {_cost(each)}" + (", taken" if each is state.taken else "")


def _cost(candidate: PlanCandidate) -> str:
    """The cost of a whole plan, or its lower bound where that was enough."""
    known = "cost" in vars(candidate)
    value = candidate.cost if known else candidate.lower_bound
    text = f"{value:,} bytes" if candidate.counts_bytes else _time(value * 1e-12)
    return text if known else f"at least {text}"


def _some(names: Sequence[str]) -> str:
    more = len(names) - NODES
    return " ".join(names[:NODES]) + (f" and {more} more" if more > 0 else "")


def _time(seconds: float) -> str:
    """Seconds with three digits in the unit that suits them."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
