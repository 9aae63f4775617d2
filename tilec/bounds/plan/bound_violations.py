"""Groups of a plan that move less than their bounds: below `least` is an error, below `known` an improvement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilec.bounds.einsum.cache import cached
from tilec.bounds.graph.best_known import best_known
from tilec.bounds.graph.interval_curves import Find
from tilec.bounds.plan.groups import group_graph, is_counted, plan_graph
from tilec.bounds.plan.plan_bounds import least
from tilec.errors import several
from tilec.ir.expr import constant_value
from tilec.ir.plan import Group, Plan, Variant

MovedBytes = Mapping[str, Mapping[str, int]]
"""Group -> level -> bytes between the level and lower ones."""


@dataclass(frozen=True)
class Finding:
    """A group that moves `moved` bytes at a level, less than `bound`, which is `proved` or the best known. `mapping`
    describes the group's mapping, `because` the best known one."""

    group: str
    level: str
    moved: int
    bound: int
    proved: bool
    mapping: str
    because: str

    def __str__(self) -> str:
        what = "any mapping moves" if self.proved else "the best known moves"
        because = f" ({self.because})" if self.because else ""
        moves = f"group {self.group} moves {self.moved} bytes at {self.level} with {self.mapping}"
        return f"{moves}, {what} {self.bound}{because}"


def moved_by(group: Group, level: str) -> int:
    """Bytes that a group reads into a level and writes from it, as planned."""
    tables = (group.cost.read, group.cost.written)
    return sum(constant_value(table[level]) or 0 for table in tables if level in table)


def bound_violations(plan: Plan, counted: MovedBytes | None = None, find: Find = cached) -> tuple[Finding, ...]:
    """Every group, and all together, that move less than their bounds, as planned and as `counted` on a run.

    Levels at which a group reads something in place are skipped where bytes were counted. Proven bounds are computed
    anew from the nodes, best known ones are read from the plan.
    """
    return (*_below(plan, {}, find), *(_below(plan, counted, find) if counted else ()))


def _below(plan: Plan, counted: MovedBytes, find: Find) -> Iterator[Finding]:
    """Findings as planned, or with `counted` of the groups in it."""
    for group in plan.groups:
        if counted and group.name not in counted:
            continue
        for level, known in group.bounds.items():
            if counted and not is_counted(group, level):
                continue
            moved = counted.get(group.name, {}).get(level, moved_by(group, level))
            graph, capacity = group_graph(plan, group), plan.capacities[level]
            proved = least(graph, capacity)
            if moved < proved:
                yield Finding(group.name, level, moved, proved, True, mapping_of(group), "")
            elif known.known is not None and moved < known.known:
                point = best_known(graph, find, capacity)
                because = str(point.mapping) if point is not None else ""
                yield Finding(group.name, level, moved, known.known, False, mapping_of(group), because)
    for level in plan.bounds if not counted else ():
        if any(level in group.bounds for group in plan.groups):
            moved = sum(moved_by(group, level) for group in plan.groups)
            proved = least(plan_graph(plan), plan.capacities[level])
            if moved < proved:
                yield Finding(plan.name, level, moved, proved, True, several(len(plan.groups), "group"), "")


def mapping_of(group: Group) -> str:
    """Tiles and reduce steps of a group, level by level: `smem y m:16 n:32 steps k:8`."""
    parts = [_at(variant, level) for variant in group.variants[:1] for level in variant.levels]
    return ", ".join(part for part in parts if part) or "whole"


def _at(variant: Variant, level: str) -> str:
    sizes = [f"{node} {_sizes(tile)}" for node, tile in variant.tiles.get(level, {}).items()]
    sizes += [f"{node} steps {_sizes(steps)}" for node, steps in variant.steps.get(level, {}).items()]
    return f"{level} {' '.join(sizes)}" if sizes else ""


def _sizes(sizes: Mapping[str, int]) -> str:
    return " ".join(f"{iterator}:{size}" for iterator, size in sizes.items())
