"""A plan as it stands: one that was edited by hand has the bytes that its decisions come to, not those that it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilec.artifact import Artifact
    from tilec.ir.plan import Plan


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A plan, and the groups whose stored costs were those of other decisions. Their predicted times still are."""

    plan: Plan
    stale: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """The groups with stale costs in one line; empty where there are none."""
        if not self.stale:
            return ""
        few = ", ".join(self.stale[:3]) + (", ..." if len(self.stale) > 3 else "")
        groups = "1 group" if len(self.stale) == 1 else f"{len(self.stale)} groups"
        return f"stale costs of {groups} ({few}): bytes are counted anew, predicted times are from before the edit"


def read_plan(artifact: Artifact | None, body: Mapping[str, Any], place: str) -> ReadPlan:
    """The plan in the body of an artifact. Raises ArtifactError with the path of an invalid value.

    The costs of an edited plan are counted anew; of one that cannot be lowered they stay.
    """
    from tilec.ir.codec import plan_from_json
    from tilec.ir.verify.plan import check_plan
    from tilec.lower.checks.plan_errors import PlanError
    from tilec.scheduler.building.cache_costs import priced

    plan = plan_from_json(body, place)
    if artifact is None or not artifact.edited or check_plan(plan):
        return ReadPlan(plan)
    try:
        counted = priced(plan)
    except PlanError:
        return ReadPlan(plan)
    pairs = zip(counted.groups, plan.groups, strict=True)
    return ReadPlan(counted, tuple(new.name for new, old in pairs if new.cost != old.cost))
