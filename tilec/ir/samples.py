"""Sizes at which a plan with symbols is looked at: few, but every variant and every edge among them (B08).

Edges are where something changes: the ends of ranges, 0 and 1, the sizes around which a guard begins to hold, and those
around the tiles of extents that vary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tilec.ir.bind_plan import plan_sizes, variant_at
from tilec.ir.equal_sizes import equal_sizes, made_equal
from tilec.ir.evaluate import integer
from tilec.ir.expr import Binary, Const, Expr, variables
from tilec.ir.plan import Group, Plan, Variant
from tilec.ir.scenarios import free_symbols, with_room
from tilec.ir.sizes import (
    ANY_SIZE,
    FURTHER,
    LARGEST_SIZE,
    SymbolRange,
    broken_constraints,
    class_sizes,
    further_sizes,
)
from tilec.ir.types import numpy_dtype

MOST = 10
"""Number of samples, unless variants need more."""

DRAWN = 256
"""Number of sizes drawn at random among which samples are chosen."""

SEARCHED = 4096
"""Number of sizes that are looked at for a variant that none of the others reaches."""

SCENARIO, LIKELY, END, GUARD, ODD, TILE = 9, 6, 8, 5, 4, 1
"""What it is worth to look at a scenario, a likely size, an end of a range (or 0 or 1), the edge of a guard, a size of
no form, the edge of a tile."""

Sizes = Mapping[str, int]
Goal = tuple[Any, ...]


@dataclass(frozen=True)
class _Candidate:
    """Sizes, what is looked at with them, and what they cost."""

    sizes: Sizes
    goals: frozenset[Goal]
    cost: int


def sample_sizes(
    plan: Plan,
    seed: int = 0,
    most: int = MOST,
    cost: Callable[[Sizes], int] | None = None,
    budget: int | None = None,
    fits: Callable[[Sizes], bool] = lambda _sizes: True,
) -> tuple[dict[str, int], ...]:
    """Sizes of all symbols of a plan that its ranges and constraints allow, the same for a seed; empty where none are
    found.

    Every variant of every group that sizes other than 0 reach runs at one of them at least; further ones, up to `most`
    in all, are those that show most. `cost` (default: the operations of the plan) decides between equals; samples that
    no variant needs end where the sum of all would exceed a `budget` of it. Sizes that do not fit are none of them.
    """
    if not plan.symbols:
        return ({},)
    weights = dict(_interesting(plan))
    found = [each for each in _candidates(plan, weights, seed, cost or partial(operations, plan)) if fits(each.sizes)]
    chosen: list[_Candidate] = []
    computing = [each for each in found if all(each.sizes.values())] or found
    missing = {goal for each in computing for goal in each.goals if goal[0] == "variant"}
    while missing:
        best = min(computing, key=lambda each: (-len(each.goals & missing), each.cost))
        chosen.append(best)
        missing -= best.goals
    left = {goal for each in found for goal in each.goals if goal in weights}
    left -= {goal for each in chosen for goal in each.goals}
    while left and len(chosen) < most:
        spent = sum(each.cost for each in chosen)
        affordable = [e for e in found if budget is None or spent + e.cost <= budget]
        if not affordable:
            break
        best = min(affordable, key=lambda e: (-sum(weights[goal] for goal in e.goals & left), e.cost))
        if not best.goals & left:
            break
        chosen.append(best)
        left -= best.goals
    return tuple(dict(each.sizes) for each in _in_order(chosen, plan))


def smallest_sizes(plan: Plan, seed: int, size: Callable[[Sizes], int]) -> tuple[dict[str, int], ...]:
    """Of the sizes among which samples are chosen the one of the least `size`; empty where none are found."""
    found = _candidates(plan, {}, seed, size)
    computing = [each for each in found if all(each.sizes.values())] or found
    return tuple(dict(each.sizes) for each in sorted(computing, key=lambda each: each.cost)[:1])


def operations(plan: Plan, sizes: Sizes) -> int:
    """Floating-point operations of a plan at some sizes."""
    return sum(int(integer(group.cost.flops, sizes)) for group in plan.groups)


def tensor_bytes(plan: Plan, names: Iterable[str], sizes: Sizes) -> int:
    """Bytes of some tensors of a plan at some sizes, as NumPy has them."""
    tensors = (plan.tensors[name] for name in names if name in plan.tensors)
    return sum(
        prod(max(0, int(integer(extent, sizes))) for extent in each.shape) * numpy_dtype(each.ttype).itemsize
        for each in tensors
    )


def variant_number(group: Group, sizes: Sizes) -> int:
    """The number of the variant of a group that runs at some sizes."""
    chosen = variant_at(group, sizes)
    return next(number for number, variant in enumerate(group.variants) if variant is chosen)


def _in_order(chosen: Sequence[_Candidate], plan: Plan) -> list[_Candidate]:
    """The sizes that the plan is made for first, then from small to large."""
    pivot = plan_sizes(plan)
    return sorted(chosen, key=lambda each: (each.sizes != pivot, each.cost, tuple(each.sizes.values())))


def _candidates(plan: Plan, weights: Mapping[Goal, int], seed: int, cost: Callable[[Sizes], int]) -> list[_Candidate]:
    """Sizes among which samples are chosen, with what each shows."""
    guards = list(dict.fromkeys(tuple(variant.guard for variant in group.variants) for group in plan.groups))
    found: dict[tuple[int, ...], _Candidate] = {}
    reached: set[Goal] = set()

    def add(sizes: Sizes, *, only_new: bool = False) -> None:
        key = tuple(sizes[symbol] for symbol in plan.symbols)
        if key in found or not _allowed(plan, sizes):
            return
        variants = {("variant", n, _first(each, sizes)) for n, each in enumerate(guards)}
        if only_new and variants <= reached:
            return
        reached.update(variants)
        goals = {goal for goal in weights if _shows(goal, sizes)}
        found[key] = _Candidate(dict(sizes), frozenset(goals | variants), cost(sizes))

    equal = equal_sizes(plan.constraints)
    for sizes in _proposed(plan, weights, seed):
        for each in _broadcasting(sizes, equal):
            add(each)
    every = {("variant", n, place) for n, each in enumerate(guards) for place in range(len(each))}
    if not every <= reached:
        for sizes in _further(plan, seed):
            for each in _broadcasting(sizes, equal):
                add(each, only_new=True)
    return list(found.values())


def _first(guards: Sequence[Expr], sizes: Sizes) -> int:
    return next(number for number, guard in enumerate(guards) if integer(guard, sizes))


def _allowed(plan: Plan, sizes: Sizes) -> bool:
    return not broken_constraints(plan.constraints, plan.symbol_ranges, sizes)


def _shows(goal: Goal, sizes: Sizes) -> bool:
    """Whether sizes are what a goal asks for: one symbol's size, some sizes, all odd, one symbol's with others' as they
    are, the relations of a scenario with something to compute."""
    kind, wanted = goal[0], goal[1:]
    if kind == "scenario":
        told = dict(wanted)
        return all(size if s not in told else size == integer(told[s], sizes) for s, size in sizes.items())
    if kind == "odd":
        return all(size % 2 and size > 1 for size in sizes.values()) and len(set(sizes.values())) == len(sizes)
    return all(sizes[symbol] == size for symbol, size in wanted)


def _interesting(plan: Plan) -> Iterator[tuple[Goal, int]]:
    """What samples should show, with its worth; later entries of a goal count."""
    entries = {symbol: plan.symbol_ranges.get(symbol, ANY_SIZE) for symbol in plan.symbols}
    for condition, worth in _conditions(plan).items():
        for edges in _edges(condition, entries):
            yield ("sizes", *edges), worth
    yield ("odd",), ODD
    for scenario in plan.scenarios.values():
        yield ("scenario", *scenario.sizes.items()), SCENARIO
    for symbol, entry in entries.items():
        for size in (entry.least, _smallest(entry), _end(entry)):
            yield ("sizes", (symbol, size)), END
        for size in (*entry.likely, entry.pivot):
            yield ("sizes", (symbol, size)), LIKELY


def _conditions(plan: Plan) -> dict[Expr, int]:
    """What guards ask for, and extents that are as large as their tiles, each with its worth."""
    conditions: dict[Expr, int] = {}
    for group in plan.groups:
        for variant in group.variants:
            conditions |= {part: GUARD for part in _conjuncts(variant.guard) if variables(part)}
            for extent, tile in _varying_tiles(group, variant):
                conditions.setdefault(Binary(">=", extent, Const(tile)), TILE)
    return conditions


def _conjuncts(guard: Expr) -> Iterator[Expr]:
    if isinstance(guard, Binary) and guard.op in ("and", "or"):
        yield from _conjuncts(guard.left)
        yield from _conjuncts(guard.right)
    else:
        yield guard


def _varying_tiles(group: Group, variant: Variant) -> Iterator[tuple[Expr, int]]:
    """Extents that vary with the tile sizes and reduce steps along them."""
    domains = {node.name: node.expr.domain for node in group.nodes}
    for table in (variant.tiles, variant.steps):
        for of_level in table.values():
            for node, sizes in of_level.items():
                for iterator, size in sizes.items():
                    if size > 1 and variables(domains[node][iterator]):
                        yield domains[node][iterator], size


def _edges(condition: Expr, entries: Mapping[str, SymbolRange]) -> Iterator[tuple[tuple[str, int], ...]]:
    """Sizes around those from which on a condition changes along one symbol, the others at their pivots or least."""
    symbols = sorted(variables(condition) & entries.keys())
    bases = [{s: entries[s].pivot for s in symbols}, {s: _smallest(entries[s]) for s in symbols}]
    for symbol in symbols:
        entry = entries[symbol]
        for base in bases:
            first = _change(condition, symbol, entry, base)
            for size in () if first is None else (first - entry.divisor, first, first + entry.divisor):
                if entry.holds(size):
                    rest = ((s, n) for s, n in base.items() if s != symbol)
                    yield ((symbol, size), *(rest if len(symbols) > 1 else ()))


def _change(condition: Expr, symbol: str, entry: SymbolRange, base: Sizes) -> int | None:
    """The smallest size of a symbol at which a condition is not what it is at the least one; None where it does not
    change."""

    def at(step: int) -> bool:
        return bool(integer(condition, {**base, symbol: step * entry.divisor}))

    low, high = entry.least // entry.divisor, (entry.most or LARGEST_SIZE) // entry.divisor
    before = at(low)
    if at(high) == before:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if at(middle) == before else (low, middle)
    return high * entry.divisor


def _smallest(entry: SymbolRange) -> int:
    """The smallest size other than 0, where there is one."""
    return entry.nearest(max(entry.least, entry.divisor))


def _end(entry: SymbolRange) -> int:
    """The largest size, or where there is none one well above the pivot."""
    return entry.nearest(FURTHER * entry.pivot) if entry.most is None else entry.most


def _proposed(plan: Plan, weights: Mapping[Goal, int], seed: int) -> Iterator[Sizes]:
    """Sizes that show something: each goal with the other symbols at their pivots, at small sizes and at others that
    show something, then sizes drawn at random."""
    entries = {symbol: plan.symbol_ranges.get(symbol, ANY_SIZE) for symbol in plan.symbols}
    pivot = plan_sizes(plan)
    small = {symbol: _smallest(entry) for symbol, entry in entries.items()}
    generator = np.random.default_rng(seed)
    told = [dict(goal[1:]) for goal in weights if goal[0] == "sizes"]
    values = {s: sorted({n for sizes in told for t, n in sizes.items() if t == s} | {pivot[s]}) for s in entries}
    yield pivot
    yield from further_sizes(plan.symbols, plan.symbol_ranges)
    yield from class_sizes(plan.symbols, plan.symbol_ranges)
    yield from _in_scenarios(plan, small, generator)
    for sizes in told:
        yield {**pivot, **sizes}
        yield {**small, **sizes}
        for _ in range(2 if len(entries) > 1 else 0):
            yield {**{s: int(generator.choice(values[s])) for s in entries}, **sizes}
    for _ in range(DRAWN):
        yield {symbol: _drawn(entry, generator) for symbol, entry in entries.items()}


def _in_scenarios(plan: Plan, small: Sizes, generator: np.random.Generator) -> Iterator[Sizes]:
    """Sizes of every scenario, and some with what it leaves free drawn at random, in small batches too."""
    entries = {symbol: plan.symbol_ranges.get(symbol, ANY_SIZE) for symbol in plan.symbols}
    for scenario in plan.scenarios.values():
        for point in scenario.at:
            yield {**plan_sizes(plan), **point}
            for start in (plan_sizes(plan), small):
                free = {s: _drawn(entries[s], generator) for s in free_symbols(scenario, plan.symbols)}
                sizes = {**start, **point, **free}
                told = {symbol: int(integer(expr, sizes)) for symbol, expr in scenario.sizes.items()}
                yield with_room({**sizes, **told}, told, plan)


def _broadcasting(sizes: Sizes, equal: Mapping[str, Expr]) -> Iterator[Sizes]:
    """Sizes, and those with sizes equal that are so unless one is 1, or with one of these 1."""
    yield sizes
    if equal:
        alike = made_equal(sizes, equal)
        yield alike
        names = sorted(equal.keys() | {name for value in equal.values() for name in variables(value)})
        yield {**alike, names[sum(sizes.values()) % len(names)]: 1}


def _drawn(entry: SymbolRange, generator: np.random.Generator) -> int:
    """A size of a range, an odd one where there are any, small ones as often as large ones."""
    low, high = max(1, entry.least), max(1, _end(entry))
    size = round(float(np.exp(generator.uniform(np.log(low), np.log(high)))))
    return max(entry.least, entry.nearest(size | 1))


def _further(plan: Plan, seed: int) -> Iterator[Sizes]:
    """All sizes where they are few, else many at random."""
    entries = {symbol: plan.symbol_ranges.get(symbol, ANY_SIZE) for symbol in plan.symbols}
    ranges = [range(e.least, (_end(e) if e.most is None else e.most) + 1, e.divisor) for e in entries.values()]
    if prod(len(each) for each in ranges) <= SEARCHED:
        yield from (dict(zip(entries, sizes, strict=True)) for sizes in product(*ranges))
        return
    generator = np.random.default_rng(seed + 1)
    for _ in range(SEARCHED):
        yield {symbol: _drawn(entry, generator) for symbol, entry in entries.items()}
