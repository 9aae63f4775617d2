"""Ratio of a plan's traffic to the best known traffic: for the plan at its lowest level, and for every group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tilec.bounds.plan.bound_violations import moved_by
from tilec.ir.loop_steps import loop_steps
from tilec.ir.plan import Bound, Group, Plan


@dataclass(frozen=True, slots=True)
class Ratio:
    """`moved` bytes between a level and lower ones, with the `bound`."""

    level: str
    moved: int
    bound: Bound

    @property
    def times(self) -> float | None:
        """Moved bytes over best known bytes; None where none is known."""
        return self.moved / self.bound.known if self.bound.known else None

    @property
    def parallel_times(self) -> float | None:
        """Moved bytes over the best known bytes in tasks for all units; None where none are known."""
        return self.moved / self.bound.parallel if self.bound.parallel else None


def attained(bound: Bound, moved: int) -> Bound:
    """A bound beside a plan that moves `moved` bytes: what the plan itself moves is known to be enough, and where that
    is less than the best known in tasks for all units, the plan has fewer tasks, to which that is nothing. Nothing
    moved says nothing: bytes may depend on symbols."""
    if not moved:
        return bound
    known = None if bound.known is None else min(bound.known, moved)
    parallel = None if bound.parallel is None or moved < bound.parallel else bound.parallel
    return Bound(bound.least, known, parallel)


def plan_ratio(plan: Plan, level: str | None = None) -> Ratio | None:
    """The ratio of all groups together at a level, the lowest that has a bound where none is given; None without a
    bound there, and for groups in serial loops: bounds hold for a single step."""
    if loop_steps(plan):
        return None
    level = next(iter(plan.bounds), None) if level is None else level
    if level is None or level not in plan.bounds:
        return None
    moved = sum(moved_by(group, level) for group in plan.groups)
    return Ratio(level, moved, attained(plan.bounds[level], moved))


def group_ratios(group: Group) -> Iterator[Ratio]:
    """The ratio of a group at every level where it has a bound."""
    for level, bound in group.bounds.items():
        moved = moved_by(group, level)
        yield Ratio(level, moved, attained(bound, moved))


def times_text(ratio: Ratio) -> str:
    """`6.48x`, or `?` where no fitting mapping is known."""
    return "?" if ratio.times is None else f"{ratio.times:.2f}x"


def ratio_to_json(ratio: Ratio) -> dict[str, Any]:
    """The ratio as plain data."""
    return {
        "known_bytes": ratio.bound.known,
        "least_bytes": ratio.bound.least,
        "level": ratio.level,
        "moved_bytes": ratio.moved,
        "parallel_bytes": ratio.bound.parallel,
    }
