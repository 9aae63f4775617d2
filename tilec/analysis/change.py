"""The vocabulary of a diff: one changed fact, one changed cost, what became of groups, and all of it together."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from tilec.analysis.ratios import Ratio
from tilec.ir.algebra import equal, simplify
from tilec.ir.expr import Expr, constant_value

Fact = dict[str, Any] | list[Any] | str | int | None
"""A decision as plain data: `{"m": 4}`, `["smem"]`, `"shift"`; None where there is none."""


@dataclass(frozen=True, slots=True)
class Change:
    """One fact that differs. `subject` is the node, tensor, edge or level that it is about, `level` the memory level,
    `guard` the variant of a group that has several."""

    kind: str
    subject: str
    before: Fact
    after: Fact
    level: str = ""
    guard: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """A cost before and after; None where the level is not used or the group is not there."""

    name: str
    before: Expr | None
    after: Expr | None

    @property
    def changed(self) -> bool:
        """Whether the two differ as expressions in the symbols."""
        if self.before is None or self.after is None:
            return self.before is not self.after
        return self.before != self.after and not equal(self.before, self.after)

    @property
    def growth(self) -> Fraction | None:
        """Part by which it grew; None when that depends on symbols, or there is nothing on one side."""
        if self.before is None or self.after is None:
            return None
        before, after = constant_value(simplify(self.before)), constant_value(simplify(self.after))
        return Fraction(after - before, before) if before and after is not None else None


@dataclass(frozen=True, slots=True)
class BoundMetric:
    """What is moved at a level beside the least that is known, before and after; None where no bound is counted."""

    level: str
    before: Ratio | None
    after: Ratio | None

    @property
    def changed(self) -> bool:
        """Whether anything of it differs."""
        return self.before != self.after


Kind = Literal[
    "added",
    "removed",
    "split",
    "merged",
    "regrouped",
    "reconnected",
    "retiled",
    "rewritten",
    "other kernel",
    "recosted",
]
"""What became of a group: regrouped is several groups to several others, recosted the same decisions counted anew."""


What = Literal["plan", "graph", "kernels"]
"""What is compared."""


@dataclass(frozen=True, slots=True)
class GroupChange:
    """Groups that became others: `before` and `after` are their names, `operators` what they compute."""

    kinds: tuple[Kind, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    operators: str
    changes: tuple[Change, ...]
    costs: tuple[Metric, ...]
    bounds: tuple[BoundMetric, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """What stands on one side: a plan with so many groups, a graph with so many nodes (and no device), or kernels with
    so many steps."""

    name: str
    device: str
    groups: int


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """All that differs between two plans: facts of the whole plan, groups, totals; `unchanged` counts groups.

    The same of two graphs, where every node is a group, and of kernels, where every step is one: `what` says which.
    """

    old: Side
    new: Side
    unchanged: int
    changes: tuple[Change, ...]
    groups: tuple[GroupChange, ...]
    totals: tuple[Metric, ...]
    bounds: tuple[BoundMetric, ...] = ()
    what: What = "plan"

    @property
    def empty(self) -> bool:
        """Whether nothing differs but names."""
        return not self.changes and not self.groups and not any(metric.changed for metric in self.totals)
