"""partition: which parts share a core's level, by predicted time (Welder's connect, W16; A05, A07, A11).

Parts stand in an order in which they can run.  Dynamic programming finds the best cut of that order into runs, each
one group or several single parts; a run may look worse than its pieces before it is complete, so all runs up to a
length are tried.  Runs only join neighbours of the order: afterwards any two groups that share an edge are tried as
one, until nothing gains.  A group of any parts is allowed whose last node depends on all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

from tilec.ir.expr import operands
from tilec.ir.plan import Refusal
from tilec.scheduler.cost import flops
from tilec.scheduler.groups.atoms import HOPE, Atoms
from tilec.scheduler.passes.ancestry import Ancestry
from tilec.scheduler.passes.parts import execution_order
from tilec.scheduler.reasons import edge, refusal

LONGEST = 16
"""Parts of a group that are tried in one run."""

GAIN = 0.99
"""A group is joined where it is expected to take less than this fraction of its pieces' time."""

PICO = 1e12


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups in execution order, each the numbers of its parts; why edges between groups are not connected."""

    groups: tuple[tuple[int, ...], ...]
    refused: Mapping[str, Refusal]


def separate(atoms: Atoms, refused: Mapping[str, Refusal]) -> Grouping:
    """Every part a group of its own."""
    return Grouping(tuple((n,) for n in range(len(atoms.parts))), refused)


def partition(atoms: Atoms, refused: Mapping[str, Refusal]) -> Grouping:
    """The groups with the least predicted time; `refused` says why edges are not inside parts."""
    trial = Trials(atoms)
    groups = _improved(trial, _runs(trial))
    return Grouping(groups, refusals(trial, groups, refused))


def looked_at(atoms: Atoms, members: tuple[int, ...]) -> tuple[float | Refusal, float | Refusal]:
    """What a group of parts may cost at best by bounds and a few candidates, and what it is predicted to cost; or why
    it may not be one.  The edge of a refusal is empty."""
    trial = Trials(atoms)
    return trial.hope(members), trial.cost(members)


@dataclass(frozen=True)
class Trials:
    """Groups that were tried, by members and by content: what they cost, or why they may not be; `hopes` are what they
    may cost at best, `keys` their contents."""

    atoms: Atoms
    tried: dict[tuple[int, ...], float | Refusal] = field(default_factory=dict)
    alike: dict[object, float | Refusal] = field(default_factory=dict)
    hopes: dict[object, float | Refusal] = field(default_factory=dict)
    keys: dict[tuple[int, ...], object] = field(default_factory=dict)

    @cached_property
    def single(self) -> tuple[float, ...]:
        """What every part costs by itself."""
        return tuple(tile.objective for tile in self.atoms.singles)

    def cost(self, members: tuple[int, ...], limit: float = inf) -> float | Refusal:
        """What a group is predicted to cost, or why it may not be one; the edge is filled in by the caller.

        One that cannot be hoped to stay below a `limit` is refused as slower without a close look.
        """
        found = self.tried.get(members)
        if found is None:
            key = self._key(members)
            if key not in self.alike:
                hope = self.hope(members)
                if not isinstance(hope, Refusal) and limit < inf:
                    hope = max(hope, self._expected(members))
                    if hope >= limit:
                        return refusal("", "", "slower", **times(hope, limit, self.atoms))
                self.alike[key] = hope if isinstance(hope, Refusal) else self._cost(members)
            found = self.tried[members] = self.alike[key]
        return found

    def hope(self, members: tuple[int, ...]) -> float | Refusal:
        """What a group may cost at best, or why it may not be one."""
        key = self._key(members)
        if key not in self.hopes:
            self.hopes[key] = self._hope(members)
        return self.hopes[key]

    def _expected(self, members: tuple[int, ...]) -> float:
        """What a close look finds at best after what a first look found; nothing is known of chains."""
        if len(members) == 1 or self.atoms.chain_of(members) is not None:
            return 0.0
        return self.atoms.look(members)[1] * HOPE

    def _key(self, members: tuple[int, ...]) -> object:
        if members not in self.keys:
            key = self.atoms.key(members, self.atoms.leaving(members))
            self.keys[members] = key, tuple(self.single[n] for n in members)
        return self.keys[members]

    def _hope(self, members: tuple[int, ...]) -> float | Refusal:
        """By bounds and a few candidates."""
        if len(members) == 1:
            return self.single[members[0]]
        atoms = self.atoms
        if not _all_lead_to_last(atoms, members):
            return refusal("", "", "outputs-differ")
        apart = sum(self.single[n] for n in members)
        bound = least(atoms, members)
        if bound >= apart * GAIN:
            return refusal("", "", "slower", **times(bound, apart, atoms))
        level = atoms.target.levels[atoms.target.core]
        held, rough = atoms.look(members)
        if held > atoms.target.capacity:
            return refusal("", "", "capacity", level=level.name, bytes=held, capacity=atoms.target.capacity)
        if rough * HOPE >= apart and atoms.chain_of(members) is None:
            return refusal("", "", "slower", **times(rough, apart, atoms))
        return bound

    def _cost(self, members: tuple[int, ...]) -> float | Refusal:
        if len(members) == 1:
            return self.single[members[0]]
        atoms = self.atoms
        apart = sum(self.single[n] for n in members)
        level = atoms.target.levels[atoms.target.core]
        tile = atoms.core_tiles(members)[0]
        if not tile.fits:
            return refusal("", "", "capacity", level=level.name, bytes=tile.held, capacity=atoms.target.capacity)
        if tile.objective >= apart * GAIN:
            return refusal("", "", "slower", **times(tile.objective, apart, atoms))
        return tile.objective


def times(joined: float, apart: float, atoms: Atoms) -> dict[str, int | str]:
    """What a group and its pieces cost, as whole picoseconds or bytes."""
    unit = PICO if atoms.objective == "time" else 1
    return {"joined": int(joined * unit), "apart": int(apart * unit)}


def _all_lead_to_last(atoms: Atoms, members: Sequence[int]) -> bool:
    """Whether the last node depends on all others."""
    reached = {atoms.parts[members[-1]][-1].name}
    for number in reversed(members):
        for node in reversed(atoms.parts[number]):
            if node.name not in reached:
                return False
            reached.update(operands(node.expr))
    return True


def least(atoms: Atoms, members: Sequence[int]) -> float:
    """What no group of these parts can fall short of: its arithmetic at full rate, what it must read and write."""
    target, inside = atoms.target, frozenset(members)
    problem = atoms.problem(members, atoms.leaving(members), ())
    if any(atoms.extents.get(node.name) for node in problem.nodes):
        return 0.0
    moved = float(sum(problem.whole(t) for t in problem.outputs))
    moved += sum(problem.bytes_of(t) * atoms.elements(members, t) for t in problem.operands if t not in problem.indexed)
    if atoms.objective == "traffic":
        return moved
    if atoms.objective == "footprint" or not inside:
        return 0.0
    work = sum(float(atoms.numbers.size(flops(n.expr))) for n in problem.nodes if _multiplies(n.expr.reduce))
    return target.launch + max(work / target.peak, moved / target.refill / target.cores)


def _multiplies(reduce: Iterable[str]) -> bool:
    return any(True for _ in reduce)


def _runs(trial: Trials) -> tuple[tuple[int, ...], ...]:
    """The best cut of the parts' order into runs; parts that stay together are not cut."""
    count = len(trial.atoms.parts)
    whole = {n for n in trial.atoms.together if n - 1 in trial.atoms.together}
    best: list[float] = [0.0]
    cut: list[int] = [0]
    for end in range(1, count + 1):
        where = next(start for start in range(end - 1, -1, -1) if start not in whole)
        found = best[where] + _total(trial, [tuple(range(where, end))]) if end not in whole else inf
        promising: list[tuple[float, int]] = []
        for start in range(where - 1, max(-1, end - 1 - LONGEST), -1):
            if start in whole or end in whole or best[start] == inf or not _joins(trial.atoms, start, end):
                continue
            members = tuple(range(start, end))
            hope = trial.hope(members)
            if not isinstance(hope, Refusal):
                promising.append((best[start] + trial.atoms.look(members)[1], start))
            elif hope.code == "capacity":
                break  # what is put before these parts takes room as well
        for _, start in sorted(promising):
            cost = trial.cost(tuple(range(start, end)), found - best[start])
            if not isinstance(cost, Refusal) and best[start] + cost < found:
                found, where = best[start] + cost, start
        best.append(found)
        cut.append(where)
    groups: list[tuple[int, ...]] = []
    end = count
    while end:
        groups.append(tuple(range(cut[end], end)))
        end = cut[end]
    return tuple(reversed(groups))


def _joins(atoms: Atoms, start: int, end: int) -> bool:
    """Whether the first part of a run is read by a later one of it."""
    return any(start in atoms.needs[n] for n in range(start + 1, end))


def _improved(trial: Trials, groups: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Groups that share an edge joined, as long as that gains and no path between them leads through others."""
    atoms = trial.atoms
    members = list(groups)
    home = {n: g for g, numbers in enumerate(members) for n in numbers}
    ancestry = Ancestry()
    for _ in members:
        ancestry.add()
    for g, numbers in enumerate(members):
        ancestry.read(g, {home[m] for n in numbers for m in atoms.needs[n]} - {g})
    again = True
    while again:
        again = False
        for reader in range(len(members)):
            for producer in sorted({home[m] for n in members[reader] for m in atoms.needs[n]} - {reader}):
                joined = tuple(sorted((*members[producer], *members[reader])))
                if len(joined) > LONGEST or _through_others(atoms, ancestry, home, members, producer, reader):
                    continue
                apart = _total(trial, (members[producer], members[reader])) * GAIN
                cost = trial.cost(joined, apart)
                if isinstance(cost, Refusal) or cost >= apart:
                    continue
                members[reader], members[producer] = joined, ()
                home |= dict.fromkeys(joined, reader)
                ancestry.read(producer, [reader])
                ancestry.read(reader, [producer])
                again = True
    kept = [numbers for numbers in members if numbers]
    place = {n: i for i, numbers in enumerate(kept) for n in numbers}
    needs = [{place[m] for n in numbers for m in atoms.needs[n]} - {i} for i, numbers in enumerate(kept)]
    return tuple(kept[i] for i in execution_order(needs, [numbers[-1] for numbers in kept]))


def _through_others(
    atoms: Atoms,
    ancestry: Ancestry,
    home: Mapping[int, int],
    members: Sequence[tuple[int, ...]],
    producer: int,
    reader: int,
) -> bool:
    """Whether another path from the producer to the reader leaves both (A07)."""
    outside = {home[m] for g in (producer, reader) for n in members[g] for m in atoms.needs[n]} - {producer, reader}
    return any(ancestry.leads(producer, other) for other in outside)


def _total(trial: Trials, groups: Iterable[tuple[int, ...]]) -> float:
    found = [trial.cost(numbers) for numbers in groups]
    return sum(c if not isinstance(c, Refusal) else inf for c in found)


def refusals(trial: Trials, groups: Sequence[tuple[int, ...]], refused: Mapping[str, Refusal]) -> dict[str, Refusal]:
    """Why edges between groups are not connected: what joining the two groups comes to."""
    atoms = trial.atoms
    home = {n: g for g, numbers in enumerate(groups) for n in numbers}
    found = dict(refused)
    for reader, edges in enumerate(atoms.edges):
        for tensor, name in edges:
            producer = home[atoms.home[tensor]]
            if producer == home[reader]:
                found.pop(edge(tensor, name), None)
                continue
            joined = tuple(sorted((*groups[producer], *groups[home[reader]])))
            apart = _total(trial, (groups[producer], groups[home[reader]]))
            if len(joined) > LONGEST:
                reason: float | Refusal = refusal("", "", "length", parts=len(joined), most=LONGEST)
            else:
                reason = trial.cost(joined, apart)
            if not isinstance(reason, Refusal):
                gains = reason < apart * GAIN
                reason = refusal("", "", "cycle") if gains else refusal("", "", "slower", **times(reason, apart, atoms))
            found[edge(tensor, name)] = Refusal(edge(tensor, name), reason.code, reason.numbers)
    return found
