"""Sizes that vary in a plan, and the variants that run at them: what is compiled, for which sizes, with which tiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilec.ir.bind_plan import plan_sizes
from tilec.ir.evaluate import integer
from tilec.ir.plan import Group, Plan, Variant
from tilec.ir.sizes import ANY_SIZE
from tilec.ir.text import text_of


@dataclass(frozen=True, slots=True)
class SymbolFacts:
    """A size that varies: the sizes allowed, those named likely, the one that the plan is made for, and who limits
    it."""

    symbol: str
    sizes: str
    likely: tuple[int, ...]
    made_for: int
    origin: str


@dataclass(frozen=True, slots=True)
class VariantFacts:
    """One variant of a group: where it runs (it is the first whose guard holds), its tiles by level and node, its
    kernel, and whether it is the one that runs at the sizes that are looked at."""

    guard: str
    tiles: Mapping[str, Mapping[str, Mapping[str, int]]]
    kernel: str
    runs: bool


@dataclass(frozen=True, slots=True)
class PlanAt:
    """A plan with symbols as it is at some sizes of all of them: the variants that run there and their costs."""

    plan: Plan
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class VariantCounts:
    """Variants of all groups: their number, that of their kernels, of groups with several, and how often each guard
    stands."""

    variants: int
    kernels: int
    groups_with_several: int
    guards: Mapping[str, int]


def symbol_facts(plan: Plan) -> tuple[SymbolFacts, ...]:
    """The sizes that vary in a plan."""
    made_for = plan_sizes(plan)
    entries = {symbol: plan.symbol_ranges.get(symbol, ANY_SIZE) for symbol in plan.symbols}
    return tuple(SymbolFacts(s, e.text, e.likely, made_for[s], e.origin) for s, e in entries.items())


def constraint_facts(plan: Plan) -> tuple[tuple[str, str], ...]:
    """The conditions on sizes as text, with who demands them."""
    return tuple((text_of(each.holds), each.origin) for each in plan.constraints)


def variant_facts(group: Group, sizes: Mapping[str, int]) -> tuple[VariantFacts, ...]:
    """The variants of a group, with the one that runs at some sizes."""
    holds = [bool(integer(variant.guard, sizes)) for variant in group.variants]
    first = holds.index(True) if True in holds else -1
    return tuple(
        VariantFacts(text_of(variant.guard), _own_tiles(variant), variant.kernel, number == first)
        for number, variant in enumerate(group.variants)
    )


def variant_counts(plan: Plan) -> VariantCounts:
    """Variants of all groups of a plan."""
    guards: dict[str, int] = {}
    for variant in _variants(plan):
        guard = text_of(variant.guard)
        guards[guard] = guards.get(guard, 0) + 1
    return VariantCounts(
        sum(guards.values()),
        len({variant.kernel for variant in _variants(plan)}),
        sum(len(group.variants) > 1 for group in plan.groups),
        dict(sorted(guards.items(), key=lambda item: (-item[1], item[0]))),
    )


def _variants(plan: Plan) -> Iterator[Variant]:
    for group in plan.groups:
        yield from group.variants


def _own_tiles(variant: Variant) -> dict[str, dict[str, dict[str, int]]]:
    return {level: {node: dict(sizes) for node, sizes in of.items()} for level, of in variant.tiles.items()}
