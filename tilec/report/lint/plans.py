"""Checks of a plan: wasteful tiles, uncoalesced transfers, groups far from their bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tilec.analysis.ratios import group_ratios
from tilec.analysis.totals import moved_at, traffic_of
from tilec.codegen.kernels import variants_alone
from tilec.ir.bind_plan import bind_plan, plan_sizes, variant_at
from tilec.ir.expr import constant_value
from tilec.ir.graph import Node
from tilec.ir.plan import Group, Plan, Variant
from tilec.ir.text import text_of
from tilec.ir.verify.plan import check_plan
from tilec.lower.checks.check_plan import problems
from tilec.lower.checks.plan_errors import PlanError
from tilec.report.formatting import bytes_text
from tilec.report.lint.finding import Finding, Place, pointer

PADDED = 1.5
"""Ratio of computed to existing elements above which a tiling is reported."""

UNCOALESCED = 4.0
"""Ratio of transacted to raw bytes above which a group is reported."""

LEAST = 1 << 16
"""Transacted bytes below which nothing is reported."""

FAR = 4.0
"""Ratio of moved bytes to the best known traffic above which a group is reported."""

SHARE = 0.01
"""Share of the plan's traffic below which a group is not reported."""


def check_plan_file(plan: Plan, file: str) -> Iterator[Finding]:
    """All errors and suspicious decisions of a plan, group by group."""
    wrong = check_plan(plan)
    yield from (Finding("illegal", Place(file), problem) for problem in wrong)
    if wrong:
        return
    there = bind_plan(plan, plan_sizes(plan))
    moved = {group.name: constant_value(traffic_of(group, there)) or 0 for group in there.groups}
    alike = Counter(_kernels(group) for group in plan.groups)
    reported_kernels: set[tuple[str, ...]] = set()
    for i, group in enumerate(plan.groups):
        for j, variant in enumerate(group.variants):
            place = Place(file, pointer=pointer("groups", i, "variants", j))
            for refusal in problems(group, variant, plan):
                yield Finding("illegal", place, f"group {group.name}: {PlanError(refusal)}".replace("\n ", ""))
        yield from _idle(plan, group, i, file)
        if _kernels(group) in reported_kernels:
            continue
        reported_kernels.add(_kernels(group))
        others = alike[_kernels(group)] - 1
        more = f"; so {'does' if others == 1 else 'do'} {others} more of its kernel" if others else ""
        for finding in _wasteful(there, there.groups[i], i, _running(plan, group), moved, file):
            yield replace(finding, message=finding.message + more)


def _running(plan: Plan, group: Group) -> list[int]:
    """The numbers of the variants that are looked at: of a plan with symbols the one that runs at the sizes that it is
    made for."""
    if not plan.symbols:
        return list(range(len(group.variants)))
    running = variant_at(group, plan_sizes(plan))
    return [number for number, each in enumerate(group.variants) if each is running]


def _idle(plan: Plan, group: Group, i: int, file: str) -> Iterator[Finding]:
    """Variants that no size reaches: the guards before hold wherever theirs does."""
    if not plan.symbols or len(group.variants) < 2:
        return
    reached = {alone.variants[0].kernel for alone, _ in variants_alone(plan, group)}
    for j, variant in enumerate(group.variants):
        if variant.kernel not in reached:
            message = f"group {group.name}: no size is served by the variant for {text_of(variant.guard)}"
            yield Finding("idle-variant", Place(file, pointer=pointer("groups", i, "variants", j)), message)


def _wasteful(
    plan: Plan, group: Group, i: int, numbers: Sequence[int], moved: Mapping[str, int], file: str
) -> Iterator[Finding]:
    """Legal but suspicious decisions of a group; `numbers` are those of its variants in the file, `moved` is the
    traffic of every group in bytes."""
    for j, variant in zip(numbers, group.variants, strict=True):
        yield from _padding(group, variant, Place(file, pointer=pointer("groups", i, "variants", j)))
    if moved[group.name] >= SHARE * sum(moved.values()):
        place = Place(file, pointer=pointer("groups", i))
        yield from _uncoalesced(plan, group, place)
        yield from _far(group, place)


def _kernels(group: Group) -> tuple[str, ...]:
    return tuple(variant.kernel for variant in group.variants)


def _padding(group: Group, variant: Variant, place: Place) -> Iterator[Finding]:
    """Nodes whose tiles, shifted back at the end, compute far more elements than exist.

    A tile is compared with the extents of the tile one level below, which contains it.
    """
    nodes = {node.name: node for node in group.nodes}
    around: dict[str, Mapping[str, int]] = {}
    for level in variant.levels:
        for name, sizes in variant.tiles.get(level, {}).items():
            node = nodes.get(name)
            if node is None:
                continue
            extents = {**_extents(node), **around.get(name, {})}
            tail = variant.tails.get(level, {}).get(name, "shift")
            if tail == "shift" and node.expr.reducer is None:
                yield from _wasted(group, name, level, sizes, extents, place)
            around[name] = {**around.get(name, {}), **sizes}


def _wasted(
    group: Group, name: str, level: str, sizes: Mapping[str, int], extents: Mapping[str, int], place: Place
) -> Iterator[Finding]:
    times = 1.0
    shown = []
    for iterator, tile in sizes.items():
        extent = extents.get(iterator)
        if extent and tile > 0 and extent % tile and tile < extent:
            count = -(-extent // tile)
            times *= count * tile / extent
            shown.append(f"{iterator}: {count} x {tile} for {extent}")
    if times >= PADDED:
        message = (
            f"group {group.name}: tiles of {name} at {level} compute {times:.1f}x its elements ({', '.join(shown)})"
        )
        yield Finding("padding", Place(place.file, pointer=place.pointer + pointer("tiles", level, name)), message)


def _extents(node: Node) -> dict[str, int]:
    """Map from iterator to extent, for those that are numbers."""
    extents = {iterator: constant_value(extent) for iterator, extent in node.expr.domain.items()}
    return {iterator: extent for iterator, extent in extents.items() if extent is not None}


def _uncoalesced(plan: Plan, group: Group, place: Place) -> Iterator[Finding]:
    """Bytes in transactions of the lowest level's data against those that tiles move of them."""
    lowest, tiled = plan.levels[0], group.variants[0].levels[1:]
    moved = next((constant_value(moved_at(group, name)) or 0 for name in tiled), 0)
    count = constant_value(group.cost.transactions[lowest.name]) if lowest.name in group.cost.transactions else None
    if not count or count * lowest.transaction < max(LEAST, UNCOALESCED * moved):
        return
    taken = count * lowest.transaction
    message = f"group {group.name}: {bytes_text(moved)} at {lowest.name} take {bytes_text(taken)} of transactions"
    where = Place(place.file, pointer=place.pointer + pointer("cost", "transactions", lowest.name))
    yield Finding("uncoalesced", where, f"{message} ({taken / max(1, moved):.1f}x)")


def _far(group: Group, place: Place) -> Iterator[Finding]:
    for ratio in group_ratios(group):
        known = ratio.bound.known
        if known is not None and ratio.times is not None and ratio.times >= FAR:
            message = (
                f"group {group.name}: {bytes_text(ratio.moved)} move at {ratio.level}, {bytes_text(known)} are known "
            )
            where = Place(place.file, pointer=place.pointer + pointer("bounds", ratio.level))
            yield Finding("far-from-bound", where, f"{message}to do ({ratio.times:.1f}x)")
