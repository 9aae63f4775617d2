"""Parts cut into convex sets for a level below a core's (W16).

Dynamic programming finds the cheapest intervals of an order that keeps chains together; an interval is extended as long
as it may still pay.  Intervals join neighbours of the order only: afterwards sets that share an edge are tried as one,
and parts at such an edge on its other side, while that gains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

from tilec.ir.expr import operands
from tilec.ir.plan import Refusal
from tilec.scheduler.fusion.group_costs import PICO
from tilec.scheduler.graph_passes.fuse_registers import execution_order
from tilec.scheduler.memory_levels.interval_costs import GrowingInterval, IntervalCosts
from tilec.scheduler.memory_levels.level_options import LevelOptions
from tilec.scheduler.refusals import edge_name, refusal

Set = tuple[int, ...]
"""Numbers of parts, ascending."""

Needs = Sequence[frozenset[int]]


def components(needs: Needs) -> list[Set]:
    """Parts that are connected by what they make."""
    pieces: list[set[int]] = []
    for number, below in enumerate(needs):
        touched = [piece for piece in pieces if piece & below]
        pieces = [piece for piece in pieces if not piece & below] + [{number}.union(*touched)]
    return [tuple(sorted(piece)) for piece in sorted(pieces, key=min)]


def partition_level(costs: IntervalCosts, options: LevelOptions) -> list[Set]:
    """The cheapest sets of the search. Raises LevelTooSmallError for a part of which no tile fits."""
    needs = costs.problem.needs
    orders = {tuple(range(len(needs))): None, tuple(chained(needs)): None}
    sets = min((_cut(costs, order, options) for order in orders), key=lambda cut: cut[0])[1]
    while (better := next(_improved(costs, sets, options), None)) is not None:
        sets = better
    return sets


def _cut(costs: IntervalCosts, order: Sequence[int], options: LevelOptions) -> tuple[float, list[Set]]:
    """Dynamic programming over the ends of runs: what the parts up to each place cost at least."""
    least, start = [0.0], [0]
    patience = max(options.patience, options.least_intervals // len(order))
    for end, final in enumerate(order):
        run = GrowingInterval(costs, final, frozenset(order[: end + 1]))
        best, first, worse, full = inf, end, 0, 0
        for at in range(end, -1, -1):
            run.extend(order[at])
            cost = run.best()
            if at == end and cost.value == inf:
                raise costs.too_small(final, cost)
            total = least[at] + cost.value
            worse = 0 if total <= best else worse + 1
            full = full + 1 if cost.held > costs.problem.capacity else 0
            if total <= best:
                best, first = total, at
            if worse > patience or full > options.capacity_patience:
                break
        least.append(best)
        start.append(first)
    cut: list[Set] = []
    end = len(order)
    while end:
        cut.append(tuple(sorted(order[start[end] : end])))
        end = start[end]
    return least[-1], cut[::-1]


def _improved(costs: IntervalCosts, sets: Sequence[Set], options: LevelOptions) -> Iterator[list[Set]]:
    """Changes that gain, while there is time to look for them."""
    needs = costs.problem.needs
    for old, new in changes(needs, sets):
        if len(costs.known) > options.costs_per_part * len(needs):
            return
        after = [members for members in sets if members not in old] + list(new)
        if running_order(needs, after) is not None:
            spent = sum(costs.cost(members).value for members in old)
            if sum(costs.cost(members).value for members in new) < spent * (1 - options.change_gain):
                yield after


def level_refusals(costs: IntervalCosts, sets: Sequence[Set]) -> dict[str, Refusal]:
    """Why edges between sets are not inside one: what joining the two comes to."""
    problem = costs.problem
    home = {number: members for members in sets for number in members}
    reasons: dict[tuple[Set, Set], Refusal] = {}
    refused: dict[str, Refusal] = {}
    for number, part in enumerate(problem.parts):
        for node in part:
            for tensor in operands(node.expr):
                pair = home[problem.home.get(tensor, number)], home[number]
                if pair[0] != pair[1]:
                    if pair not in reasons:
                        reasons[pair] = joining(costs, sets, pair)
                    refused[edge_name(tensor, node.name)] = replace(reasons[pair], edge=edge_name(tensor, node.name))
    return refused


def joining(costs: IntervalCosts, sets: Sequence[Set], pair: tuple[Set, Set]) -> Refusal:
    """Why two of some sets are not one; the edge is filled in by the caller."""
    problem, joined = costs.problem, tuple(sorted((*pair[0], *pair[1])))
    if running_order(problem.needs, [members for members in sets if members not in pair] + [joined]) is None:
        return refusal("", "", "cycle")
    cost, apart = costs.cost(joined), [costs.cost(members) for members in pair]
    if cost.value < inf:
        unit = PICO if problem.objective == "time" else 1
        spent = sum(each.value for each in apart if each.value < inf)
        return refusal("", "", "slower", joined=int(cost.value * unit), apart=int(spent * unit))
    if cost.held > problem.capacity:
        level = problem.target.levels[problem.level].name
        return refusal("", "", "capacity", level=level, bytes=int(cost.held), capacity=int(problem.capacity))
    return refusal("", "", "outputs-differ")


def changes(needs: Needs, sets: Sequence[Set]) -> Iterator[tuple[tuple[Set, Set], tuple[Set, ...]]]:
    """Sets to replace, and what replaces them: for every edge between two, both as one, or one end moved over."""
    home = {number: members for members in sets for number in members}
    joined: set[tuple[Set, Set]] = set()
    for reader, below in enumerate(needs):
        for producer in sorted(below):
            a, b = home[producer], home[reader]
            if a == b:
                continue
            if (a, b) not in joined:
                joined.add((a, b))
                yield (a, b), (tuple(sorted((*a, *b))),)
            for source, target, number in ((a, b, producer), (b, a, reader)):
                if len(source) > 1:
                    left = tuple(n for n in source if n != number)
                    yield (a, b), (left, tuple(sorted((*target, number))))


def running_order(needs: Needs, sets: Sequence[Set]) -> list[int] | None:
    """An order in which sets can run; None if they wait for each other."""
    home = {number: at for at, members in enumerate(sets) for number in members}
    between = [{home[n] for m in members for n in needs[m]} - {at} for at, members in enumerate(sets)]
    try:
        return execution_order(between, [members[-1] for members in sets])
    except ValueError:
        return None


def chained(needs: Needs) -> list[int]:
    """A topological order in which a part follows one that it reads, if it can."""
    readers: list[list[int]] = [[] for _ in needs]
    for number, below in enumerate(needs):
        for producer in sorted(below):
            readers[producer].append(number)
    missing = [len(below) for below in needs]
    ready = [number for number in reversed(range(len(needs))) if not missing[number]]
    order: list[int] = []
    while ready:
        number = ready.pop()
        order.append(number)
        for reader in reversed(readers[number]):
            missing[reader] -= 1
            if not missing[reader]:
                ready.append(reader)
    return order
