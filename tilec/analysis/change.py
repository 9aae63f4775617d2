"""The data of a diff: changed facts, changed costs, changed groups, and all of them together."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from tilec.analysis.ratios import Ratio
from tilec.ir.algebra import equal, simplify
from tilec.ir.expr import Expr, constant_value

Fact = dict[str, Any] | list[Any] | str | int | None
"""A decision as plain data: `{"m": 4}`, `["smem"]`, `"shift"`; None where a side has none."""


@dataclass(frozen=True, slots=True)
class Change:
    """One fact that differs.

    `subject` is the node, tensor, edge or level concerned, `level` the memory level, `guard` the variant of a group
    that has several.
    """

    kind: str
    subject: str
    before: Fact
    after: Fact
    level: str = ""
    guard: str = ""


@dataclass(frozen=True, slots=True)
class Metric:
    """A cost before and after; None where the level is unused or the group is missing."""

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
        """Relative growth; None if it depends on symbols, or if a side has no value."""
        if self.before is None or self.after is None:
            return None
        before, after = constant_value(simplify(self.before)), constant_value(simplify(self.after))
        return Fraction(after - before, before) if before and after is not None else None


@dataclass(frozen=True, slots=True)
class BoundMetric:
    """Ratio of traffic to the best known one at a level, before and after; None where no bound is counted.
    There is no metric where the best is known on neither side."""

    level: str
    before: Ratio | None
    after: Ratio | None

    @property
    def changed(self) -> bool:
        """Whether the two sides differ."""
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
"""The kind of change of a group: regrouped is several groups to several others, recosted is equal decisions with other
costs."""


What = Literal["plan", "graph", "kernels"]
"""The kind of artifact that is compared."""


@dataclass(frozen=True, slots=True)
class GroupChange:
    """Groups that became others: `before` and `after` are their names, `operators` their operators."""

    kinds: tuple[Kind, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    operators: str
    changes: tuple[Change, ...]
    costs: tuple[Metric, ...]
    bounds: tuple[BoundMetric, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a diff: a plan with its number of groups, a graph with its number of nodes (and no device), or
    kernels with their number of steps. `at` are the sizes that the costs of a plan with symbols are for."""

    name: str
    device: str
    groups: int
    at: str = ""


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """All differences between two plans: facts of the whole plan, groups, totals; `unchanged` counts groups.

    It is also the diff of two graphs, where every node is a group, and of kernels, where every step is one; `what` is
    the kind.
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
        """Whether nothing but names differs."""
        return not self.changes and not self.groups and not any(metric.changed for metric in self.totals)
