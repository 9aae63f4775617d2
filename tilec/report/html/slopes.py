"""Ski slopes of a plan's groups: the least traffic known at every capacity, and what is proved (O01, O31).

Groups with equal kernels have one slope.  Only plans that carry bounds have any: their curves are in the cache then.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from tilec.bounds.einsum.cache import cached
from tilec.bounds.graph.best_known import graph_points
from tilec.bounds.graph.interval_curves import Find
from tilec.bounds.plan.groups import group_graph
from tilec.bounds.plan.plan_bounds import product_leasts
from tilec.ir.graph import Graph
from tilec.ir.plan import Group, Plan

Pairs = tuple[tuple[int, int], ...]
"""Bytes of buffer, rising, and bytes of traffic, falling."""

_STEPS = 2
"""Capacities at which what is proved is worked out, per doubling."""


@dataclass(frozen=True, slots=True)
class Slope:
    """`known` is attained by mappings, each until the next; nothing stays below `proved`."""

    known: Pairs
    proved: Pairs


def slopes(plan: Plan, find: Find = cached) -> tuple[tuple[Slope, ...], dict[str, int]]:
    """The slopes of a plan, and by group the number of its own; groups without bounds have none."""
    found: list[Slope] = []
    numbers: dict[tuple[str, ...], int] = {}
    by_group: dict[str, int] = {}
    for group in plan.groups:
        if not group.bounds:
            continue
        key = tuple(variant.kernel for variant in group.variants)
        if key not in numbers:
            numbers[key] = len(found)
            found.append(_slope(plan, group, find))
        by_group[group.name] = numbers[key]
    return tuple(found), by_group


def _slope(plan: Plan, group: Group, find: Find) -> Slope:
    graph = group_graph(plan, group)
    least = {plan.capacities[level]: bound.least for level, bound in group.bounds.items()}
    points = graph_points(graph, find, capacities=least)
    known = tuple((point.buffer_bytes, point.traffic_bytes) for point in points)
    low = min([*least, *(size for size, _ in known[:1])])
    return Slope(_told(known, least.keys()), _proved(graph, max(low, 1), least))


def _proved(graph: Graph, low: int, least: Mapping[int, int]) -> Pairs:
    """What is proved from a capacity on up to the largest of those at which the plan says the `least`.

    Up to there nothing is below the least at that capacity, nor below what products have to load, and one of the two
    is the least. Of equal values the first and the last.
    """
    high = max(least)
    doublings = (high // low).bit_length()
    steps = {min(high, round(low * 2 ** (step / _STEPS))) for step in range(_STEPS * doublings + 1)}
    sizes = sorted(steps | least.keys())
    pairs = [(s, max(least[high], loaded)) for s, loaded in zip(sizes, product_leasts(graph, sizes), strict=True)]
    inner = zip(pairs, pairs[1:], pairs[2:], strict=False)
    kept = [b for a, b, c in inner if not a[1] == b[1] == c[1]]
    return tuple(dict.fromkeys((pairs[0], *kept, pairs[-1])))


def _told(pairs: Pairs, capacities: Set[int]) -> Pairs:
    """Points that can be told apart in a drawing, each at least 0.1 % below the one before; the last of all, and the
    best within every one of the `capacities`."""
    needed = {max((size for size, _ in pairs if size <= capacity), default=0) for capacity in capacities}
    kept: list[tuple[int, int]] = []
    for pair in pairs:
        if not kept or 1000 * pair[1] < 999 * kept[-1][1] or pair[0] in needed or pair == pairs[-1]:
            kept.append(pair)
    return tuple(kept)
