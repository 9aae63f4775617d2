"""Bounds of a plan: of every group, and of all together, at every level where the plan counts all traffic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tilec.bounds.einsum.cache import cached_parallel
from tilec.bounds.einsum.lower import product_loads
from tilec.bounds.graph.best_known import best_known, parallel_known
from tilec.bounds.graph.compulsory import compulsory, wholly_needed
from tilec.bounds.graph.contractions import bytes_of, contraction_of
from tilec.bounds.graph.interval_curves import CurveCache, Find
from tilec.bounds.graph.parallel_curves import FindParallel
from tilec.bounds.levels import LevelCapacity
from tilec.bounds.plan.groups import group_graph, plan_graph
from tilec.ir.bind_plan import bind_plan, with_cost_of
from tilec.ir.graph import Graph
from tilec.ir.plan import Bound, Plan
from tilec.ir.sizes import pivot_sizes


def with_bounds(
    plan: Plan, levels: Iterable[LevelCapacity], find: Find | None, find_parallel: FindParallel = cached_parallel
) -> Plan:
    """The plan with bounds at the capacities of a device's `levels`; while sizes are symbols, those of the sizes that
    it was made for.

    `find` gives the curve of one contraction, `find_parallel` that in tasks for the units of a level; without them
    bounds are what is proved, and nothing is known to be attainable, which takes most of the time. All groups
    together are bounded above the lowest level and at the lowest level that holds tiles. A group has bounds at the
    levels that hold its tiles, for a cache may hold what earlier groups left.
    """
    if plan.symbols:
        bound = bind_plan(plan, pivot_sizes(plan.symbols, plan.symbol_ranges))
        counted = with_bounds(bound, levels, find, find_parallel)
        return replace(with_cost_of(plan, counted), capacities=counted.capacities)
    sizes = {each.level: each for each in levels}
    tiled = {name: sizes[name] for name in _tiled(plan) if name in sizes}
    search = _Search(find, find_parallel, CurveCache())
    by_kernels: dict[tuple[str, ...], Mapping[str, Bound]] = {}
    for group in plan.groups:
        key = tuple(variant.kernel for variant in group.variants)
        if key not in by_kernels:
            used = {name for variant in group.variants for name in variant.levels}
            at = [each for level, each in tiled.items() if level in used]
            by_kernels[key] = search.bounds(group_graph(plan, group), at) if at else {}
    groups = tuple(replace(g, bounds=by_kernels[tuple(variant.kernel for variant in g.variants)]) for g in plan.groups)
    whole = {level: sizes[level] for level in (lowest(plan), *list(tiled)[:1]) if level in sizes}
    bounds = search.bounds(plan_graph(plan), list(whole.values()))
    capacities = {level: each.capacity for level, each in {**whole, **tiled}.items()}
    return replace(plan, groups=groups, capacities=capacities, bounds=bounds)


def lowest(plan: Plan) -> str:
    """The level above the lowest one."""
    return plan.levels[min(1, len(plan.levels) - 1)].name


def _tiled(plan: Plan) -> list[str]:
    """Levels above the lowest that hold tiles of some group, lowest first."""
    named = {name for group in plan.groups for variant in group.variants for name in variant.levels}
    return [level.name for level in plan.levels[1:] if level.name in named]


def least(graph: Graph, capacity: int) -> int:
    """Proven lower bound in bytes of a graph's traffic between a buffer of `capacity` bytes and its backing store.

    The maximum of compulsory traffic and of the results plus the loads of a matrix product of two tensors from outside.
    """
    return leasts(graph, (capacity,))[0]


def leasts(graph: Graph, capacities: Iterable[int]) -> list[int]:
    """`least` at several capacities, in little more time than at one."""
    moved = compulsory(graph)
    return [max(moved, loaded) for loaded in product_leasts(graph, capacities)]


def product_leasts(graph: Graph, capacities: Iterable[int]) -> list[int]:
    """Results of a graph plus the loads of a matrix product of two tensors from outside, all of which the results need,
    in bytes, at several capacities; 0 without such a product. It falls with the capacity."""
    leaving = sum(bytes_of(graph.tensors[name]) for name in {port.tensor for port in graph.outputs})
    computed = {node.name for node in graph.nodes}
    needed = wholly_needed(graph)
    einsums = (contraction_of(node, graph.tensors) for node in graph.nodes if node.name in needed)
    outside = [e for e in einsums if e is not None and computed.isdisjoint(operand.tensor for operand in e.inputs)]
    return [max((leaving + product_loads(e, capacity) for e in outside), default=0) for capacity in capacities]


@dataclass(frozen=True)
class _Search:
    """How the curves of contractions are found, and those that are known."""

    find: Find | None
    find_parallel: FindParallel
    curves: CurveCache

    def bounds(self, graph: Graph, levels: Sequence[LevelCapacity]) -> dict[str, Bound]:
        """The bounds of a graph at levels."""
        proved = leasts(graph, [each.capacity for each in levels])
        return {each.level: self._bound(graph, each, least) for each, least in zip(levels, proved, strict=True)}

    def _bound(self, graph: Graph, level: LevelCapacity, proved: int) -> Bound:
        if self.find is None:
            return Bound(proved, None)
        point = best_known(graph, self.find, level.capacity, self.curves)
        known = point.traffic_bytes if point is not None else None
        if level.units == 1 or known is None:
            return Bound(proved, known)
        # A chain of heads apart can move less than the chain of all heads that is known for one unit.
        tasks = parallel_known(graph, self.find_parallel, level.capacity, level.units, self.curves)
        return Bound(proved, known, max(known, tasks.traffic_bytes) if tasks is not None else None)
