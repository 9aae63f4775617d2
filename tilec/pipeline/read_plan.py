"""A plan as it stands: one that was edited by hand has the costs that its decisions come to, not those that it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilec.pipeline.job import StageInput

if TYPE_CHECKING:
    from tilec.ir.plan import Plan
    from tilec.spec.device import DeviceSpec

_MOST = 3
"""Groups that a note names."""


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A plan with the costs that its decisions come to.

    stale  groups of which the stored costs were those of other decisions
    timed  whether predicted times are those of its decisions, too: not where an edited plan's device is not known
    """

    plan: Plan
    stale: tuple[str, ...] = ()
    timed: bool = True

    @property
    def note(self) -> str:
        """What of the stored costs was stale, or may be, in one line; empty where nothing was."""
        few = ", ".join(self.stale[:_MOST]) + (", ..." if len(self.stale) > _MOST else "")
        groups = "1 group" if len(self.stale) == 1 else f"{len(self.stale)} groups"
        stale = f"stale costs of {groups} ({few})"
        if self.timed:
            return f"{stale} are counted anew" if self.stale else ""
        before = "predicted times may be from before the edit, for its device is not known here"
        return f"{stale}: bytes are counted anew; {before}" if self.stale else f"edited: {before}"


def read_plan(source: StageInput, device: DeviceSpec | None = None) -> ReadPlan:
    """The plan of an artifact. Raises ArtifactError with the path of an invalid value.

    The costs of an edited plan are counted anew, its times for the `device` that it was made for; without it, times
    stay. Those of one that cannot be lowered stay all.
    """
    from tilec.ir.codec import plan_from_json
    from tilec.ir.verify.plan import check_plan

    plan = plan_from_json(source.body, source.place)
    if source.artifact is None or not source.artifact.edited or check_plan(plan):
        return ReadPlan(plan)
    return counted_anew(plan, device)


def counted_anew(plan: Plan, device: DeviceSpec | None) -> ReadPlan:
    """A legal plan with the costs that its decisions come to; as it is where no program comes of it."""
    from tilec.lower.checks.plan_errors import PlanError
    from tilec.scheduler.schedule import recounted_plan

    try:
        counted = recounted_plan(plan, device)
    except PlanError:
        return ReadPlan(plan)
    pairs = zip(counted.groups, plan.groups, strict=True)
    stale = tuple(new.name for new, old in pairs if new.cost != old.cost)
    return ReadPlan(counted, stale, device is not None)
