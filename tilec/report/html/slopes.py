"""Ski slopes of a plan's groups: the best known traffic at every capacity, and proved lower bounds (Orojenesis).

Groups with equal kernels have one slope. Only plans that carry bounds have any: their curves are in the cache then.
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
"""Pairs of buffer (bytes, rising) and traffic (bytes, falling)."""

_STEPS = 2
"""Number of capacities per doubling at which the proved bound is evaluated."""


@dataclass(frozen=True, slots=True)
class Slope:
    """`known` is attained by mappings, each value until the next point; no mapping is below `proved`."""

    known: Pairs
    proved: Pairs


def slopes(plan: Plan, find: Find = cached) -> tuple[tuple[Slope, ...], dict[str, int]]:
    """The slopes of a plan, and the number of each group's slope; groups without bounds have none."""
    distinct: list[Slope] = []
    numbers: dict[tuple[str, ...], int] = {}
    by_group: dict[str, int] = {}
    for group in plan.groups:
        if not group.bounds:
            continue
        key = tuple(variant.kernel for variant in group.variants)
        if key not in numbers:
            numbers[key] = len(distinct)
            distinct.append(_slope(plan, group, find))
        by_group[group.name] = numbers[key]
    return tuple(distinct), by_group


def _slope(plan: Plan, group: Group, find: Find) -> Slope:
    graph = group_graph(plan, group)
    least = {plan.capacities[level]: bound.least for level, bound in group.bounds.items()}
    points = graph_points(graph, find, capacities=least)
    known = tuple((point.buffer_bytes, point.traffic_bytes) for point in points)
    low = min([*least, *(size for size, _ in known[:1])])
    return Slope(_distinguishable(known, least.keys()), _proved(graph, max(low, 1), least))


def _proved(graph: Graph, low: int, least: Mapping[int, int]) -> Pairs:
    """The proved bound from a capacity up to the largest of those in `least`, the plan's own lower bounds.

    Up to there no traffic is below the bound at the largest capacity, nor below the operands that products have to
    load; the larger of the two is taken. Of equal values the first and the last are kept.
    """
    high = max(least)
    doublings = (high // low).bit_length()
    steps = {min(high, round(low * 2 ** (step / _STEPS))) for step in range(_STEPS * doublings + 1)}
    sizes = sorted(steps | least.keys())
    pairs = [(s, max(least[high], loaded)) for s, loaded in zip(sizes, product_leasts(graph, sizes), strict=True)]
    inner = zip(pairs, pairs[1:], pairs[2:], strict=False)
    inner_pairs = [b for a, b, c in inner if not a[1] == b[1] == c[1]]
    return tuple(dict.fromkeys((pairs[0], *inner_pairs, pairs[-1])))


def _distinguishable(pairs: Pairs, capacities: Set[int]) -> Pairs:
    """Points that a drawing can distinguish: each at least 0.1 % below the previous one, the last point, and the best
    point within each of the `capacities`."""
    needed = {max((size for size, _ in pairs if size <= capacity), default=0) for capacity in capacities}
    points: list[tuple[int, int]] = []
    for pair in pairs:
        if not points or 1000 * pair[1] < 999 * points[-1][1] or pair[0] in needed or pair == pairs[-1]:
            points.append(pair)
    return tuple(points)
