"""Predicted costs of groups of parts, or why some parts may not be a group (W16, W24; the reasons of A05).

A cost depends on the group and the limit alone, not on what was asked before: plans are the same bytes however the
search is divided among processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any

from tilec.ir.plan import Refusal
from tilec.scheduler.building.plan_costs import operations_at_peak
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.refusals import refusal
from tilec.scheduler.search_cache import Prices
from tilec.scheduler.tiling.further_sinks import further_sinks, is_connected, sinks_of
from tilec.scheduler.tiling.register_tiles import speed

PICO = 1e12

CACHED_SINK_GAIN = 0.95
"""Where hardware fills a core's level, results that are tiled together have to cost less than this fraction of other
groups: a cache keeps what they share from one group to the next too, and nothing is measured of them yet."""


@dataclass(frozen=True)
class GroupCosts:
    """Costs of groups, by members and by content.

    gain    a group has to cost less than this fraction of its parts by themselves
    barred  parts that may not be a group
    tried   group -> its cost, or why it is none
    keys    group -> its content
    """

    problem: FusionProblem
    gain: float
    barred: frozenset[tuple[int, ...]] = frozenset()
    tried: dict[tuple[int, ...], float | Refusal] = field(default_factory=dict)
    keys: dict[tuple[int, ...], object] = field(default_factory=dict)

    @cached_property
    def _by_content(self) -> tuple[Prices, Prices]:
        """Costs and lower bounds, for all problems of a search that have neither bars nor tiles around them, nor a
        chain."""
        if self.barred or self.problem.extents or self.problem.chain is not None:
            return {}, {}
        return self.problem.cache.prices.setdefault(self.gain, ({}, {}))

    @property
    def alike(self) -> Prices:
        """Content of a group -> its cost, or why it is none."""
        return self._by_content[0]

    @property
    def bounds(self) -> Prices:
        """Content of a group -> its lower bound, or why it is none."""
        return self._by_content[1]

    @cached_property
    def single(self) -> tuple[float, ...]:
        """Cost of every part by itself."""
        return tuple(tile.objective for tile in self.problem.singles)

    def cost(self, members: tuple[int, ...], limit: float = inf) -> float | Refusal:
        """Predicted cost of a group, or why it may not be one; the edge is filled in by the caller.

        A group whose lower bound is not below a `limit` is refused as slower, without a close look.
        """
        if limit < inf:
            bound = self.lower_bound(members)
            if isinstance(bound, Refusal):
                return bound
            bound = max(bound, self._expected(members))
            if bound >= limit:
                return refusal("", "", "slower", **cost_numbers(bound, limit, self.problem))
        cost = self.tried.get(members)
        if cost is None:
            key = self._key(members)
            if key not in self.alike:
                bound = self.lower_bound(members)
                self.alike[key] = bound if isinstance(bound, Refusal) else self._cost(members)
            cost = self.tried[members] = self.alike[key]
        return cost

    def total(self, groups: Iterable[tuple[int, ...]]) -> float:
        """Cost of several groups together, infinite if one of them may not be a group."""
        costs = [self.cost(members) for members in groups]
        return sum(c if not isinstance(c, Refusal) else inf for c in costs)

    @property
    def memories(self) -> tuple[dict[Any, Any], ...]:
        """The tables by content, of these costs and of the problem's cache; they depend on nothing else."""
        cache = self.problem.cache
        return self.alike, self.bounds, cache.registers, cache.tiles, cache.looks

    def lower_bound(self, members: tuple[int, ...]) -> float | Refusal:
        """Cost that a group cannot fall short of, or why it may not be one, by bounds and a few candidates."""
        key = self._key(members)
        if key not in self.bounds:
            self.bounds[key] = self._lower_bound(members)
        return self.bounds[key]

    def _expected(self, members: tuple[int, ...]) -> float:
        """Cost that a close look finds at best, by what a first look found; nothing is known of chains."""
        if len(members) == 1 or self.problem.chain_of(members) is not None:
            return 0.0
        return self.problem.look(members).hoped

    def _key(self, members: tuple[int, ...]) -> object:
        if members not in self.keys:
            key = self.problem.key(members, self.problem.leaving(members))
            self.keys[members] = key, tuple(self.single[n] for n in members)
        return self.keys[members]

    def _lower_bound(self, members: tuple[int, ...]) -> float | Refusal:
        if len(members) == 1:
            return self.single[members[0]]
        problem = self.problem
        if members in self.barred:
            return refusal("", "", "illegal", parts=len(members))
        nodes = sum(len(problem.parts[n]) for n in members)
        if nodes > problem.max_nodes:
            return refusal("", "", "length", nodes=nodes, most=problem.max_nodes)
        reason = unaligned_results(problem, members)
        if reason is not None:
            return reason
        apart = sum(self.single[n] for n in members)
        bound = roofline(problem, members)
        if bound >= apart * self.gain:
            return refusal("", "", "slower", **cost_numbers(bound, apart, problem, self.gain))
        level = problem.target.levels[problem.target.core]
        least, about, hoped = problem.look(members)
        if least > problem.target.capacity:
            return refusal("", "", "capacity", level=level.name, bytes=least, capacity=problem.target.capacity)
        if hoped >= apart and problem.chain_of(members) is None:
            return refusal("", "", "slower", **cost_numbers(about, apart, problem))
        return bound

    def _cost(self, members: tuple[int, ...]) -> float | Refusal:
        if len(members) == 1:
            return self.single[members[0]]
        problem = self.problem
        apart = sum(self.single[n] for n in members)
        level = problem.target.levels[problem.target.core]
        tile = problem.core_tiles(members)[0]
        if not tile.fits:
            return refusal("", "", "capacity", level=level.name, bytes=tile.held, capacity=problem.target.capacity)
        clear = tile.objective / self._sink_gain(members)
        if clear >= apart * self.gain:
            return refusal("", "", "slower", **cost_numbers(clear, apart, problem, self.gain))
        return clear

    def _sink_gain(self, members: tuple[int, ...]) -> float:
        """The fraction of its pieces that a group has to cost less than for its further sinks."""
        nodes = [node for number in members for node in self.problem.parts[number]]
        return CACHED_SINK_GAIN if self.problem.target.is_cached and sinks_of(nodes) else 1.0


def cost_numbers(joined: float, apart: float, problem: FusionProblem, gain: float = 1.0) -> dict[str, int | str]:
    """Costs of a group and of its pieces as a refusal has them: whole picoseconds or bytes; where the group costs less,
    the `limit` that it does not stay below."""
    unit = PICO if problem.objective == "time" else 1
    numbers: dict[str, int | str] = {"joined": int(joined * unit), "apart": int(apart * unit)}
    return numbers | ({"limit": int(apart * gain * unit)} if joined < apart else {})


def unaligned_results(problem: FusionProblem, members: Sequence[int]) -> Refusal | None:
    """Why results of a group that its last node does not need cannot be tiled along with it (W06); None if they can,
    or there are none."""
    nodes = [node for number in members for node in problem.parts[number]]
    sinks = sinks_of(nodes)
    if not sinks:
        return None
    if problem.extents or problem.chain_of(members) is not None:
        return refusal("", "", "outputs-differ", results=len(sinks) + 1, reason="held in a tile of another level")
    if not is_connected(nodes):
        return refusal("", "", "outputs-differ", results=len(sinks) + 1, reason="no common ancestor in the group")
    if not further_sinks(nodes).aligned:
        return refusal("", "", "outputs-differ", results=len(sinks) + 1, reason="no iterators move along")
    return None


def roofline(problem: FusionProblem, members: Sequence[int]) -> float:
    """Cost that no tiling of a group falls short of: its arithmetic at full rate, its compulsory traffic."""
    target, inside = problem.target, frozenset(members)
    tiling = problem.tiling_problem(members, problem.leaving(members), ())
    if any(problem.extents.get(node.name) for node in tiling.group.nodes):
        return 0.0
    moved = float(sum(tiling.whole(t) for t in tiling.group.outputs))
    elements = problem.elements(members)
    moved += sum(
        tiling.storage.bytes_of(t) * elements[t] for t in tiling.group.operands if t not in tiling.group.indexed
    )
    if problem.objective == "traffic":
        return moved
    if problem.objective == "footprint" or not inside:
        return 0.0
    work = sum(
        float(problem.numbers.size(operations_at_peak(n.expr))) / speed(n.expr, problem.graph, target)
        for n in tiling.group.nodes
        if _multiplies(n.expr.reduce)
    )
    return target.launch + max(work / target.peak, moved / target.refill / target.cores)


def _multiplies(reduce: Iterable[str]) -> bool:
    return any(True for _ in reduce)
