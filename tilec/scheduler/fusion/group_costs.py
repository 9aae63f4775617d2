"""trials: groups that are tried, what they cost, or why they may not be (W16, W24; the reasons of A05).

What is answered depends on the group and the limit alone, not on what was tried before: plans are the same bytes
however the search is divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any

from tilec.ir.expr import operands
from tilec.ir.plan import Refusal
from tilec.scheduler.building.plan_costs import flops
from tilec.scheduler.fusion_problem import CLOSE_LOOK_GAIN, FusionProblem
from tilec.scheduler.refusals import refusal

MAX_PARTS = 16
"""Parts of a group that are tried in one run."""

JOIN_GAIN = 0.99
"""A group is joined where it is expected to take less than this fraction of its pieces' time."""

PICO = 1e12


@dataclass(frozen=True)
class GroupCosts:
    """Groups that were tried, by members and by content: what they cost, or why they may not be; `hopes` are what they
    may cost at best, `keys` their contents."""

    atoms: FusionProblem
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

        One that cannot be hoped to stay below a `limit` is refused as slower, without a close look.
        """
        if limit < inf:
            hope = self.hope(members)
            if isinstance(hope, Refusal):
                return hope
            hope = max(hope, self._expected(members))
            if hope >= limit:
                return refusal("", "", "slower", **cost_numbers(hope, limit, self.atoms))
        found = self.tried.get(members)
        if found is None:
            key = self._key(members)
            if key not in self.alike:
                hope = self.hope(members)
                self.alike[key] = hope if isinstance(hope, Refusal) else self._cost(members)
            found = self.tried[members] = self.alike[key]
        return found

    def total(self, groups: Iterable[tuple[int, ...]]) -> float:
        """What some groups cost together, without bound if one of them may not be."""
        found = [self.cost(members) for members in groups]
        return sum(c if not isinstance(c, Refusal) else inf for c in found)

    @property
    def memories(self) -> tuple[dict[Any, Any], ...]:
        """What is remembered by content, here and by the atoms; it depends on nothing else."""
        return self.alike, self.hopes, self.atoms.registers, self.atoms.known, self.atoms.looks

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
        return self.atoms.look(members)[1] * CLOSE_LOOK_GAIN

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
        bound = lower_bound(atoms, members)
        if bound >= apart * JOIN_GAIN:
            return refusal("", "", "slower", **cost_numbers(bound, apart, atoms))
        level = atoms.target.levels[atoms.target.core]
        held, rough = atoms.look(members)
        if held > atoms.target.capacity:
            return refusal("", "", "capacity", level=level.name, bytes=held, capacity=atoms.target.capacity)
        if rough * CLOSE_LOOK_GAIN >= apart and atoms.chain_of(members) is None:
            return refusal("", "", "slower", **cost_numbers(rough, apart, atoms))
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
        if tile.objective >= apart * JOIN_GAIN:
            return refusal("", "", "slower", **cost_numbers(tile.objective, apart, atoms))
        return tile.objective


def cost_numbers(joined: float, apart: float, atoms: FusionProblem) -> dict[str, int | str]:
    """What a group and its pieces cost, as whole picoseconds or bytes."""
    unit = PICO if atoms.objective == "time" else 1
    return {"joined": int(joined * unit), "apart": int(apart * unit)}


def _all_lead_to_last(atoms: FusionProblem, members: Sequence[int]) -> bool:
    """Whether the last node depends on all others."""
    reached = {atoms.parts[members[-1]][-1].name}
    for number in reversed(members):
        for node in reversed(atoms.parts[number]):
            if node.name not in reached:
                return False
            reached.update(operands(node.expr))
    return True


def lower_bound(atoms: FusionProblem, members: Sequence[int]) -> float:
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


def costs_of(atoms: FusionProblem, members: tuple[int, ...]) -> tuple[float | Refusal, float | Refusal]:
    """What a group of parts may cost at best by bounds and a few candidates, and what it is predicted to cost; or why
    it may not be one.  The edge of a refusal is empty."""
    trial = GroupCosts(atoms)
    return trial.hope(members), trial.cost(members)
