"""A plan with symbols at sizes that somebody names: the variants that run there, with what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilec.ir.plan import Plan
    from tilec.spec.device import DeviceSpec


def plan_at_sizes(plan: Plan, sizes: Mapping[str, int], device: DeviceSpec | None) -> Plan:
    """The plan at some sizes of its symbols, those left out as the plan is made for: each group with the variant that
    runs there, costs counted and, where the `device` is known, times predicted and bounds found for these sizes.

    Raises UsageError for sizes that the plan does not have or allow, PlanError where no tile program comes of a group.
    """
    from tilec.ir.bind_plan import bind_plan, complete_sizes, plan_sizes
    from tilec.pipeline.plan_bounds import is_bounded, plan_with_bounds
    from tilec.scheduler.schedule import recounted_plan

    there = complete_sizes(plan, sizes)
    if there == plan_sizes(plan):
        return bind_plan(plan, there)
    counted = recounted_plan(bind_plan(plan, there), device)
    if device is None:
        untimed = tuple(replace(each, cost=replace(each.cost, picoseconds=0)) for each in counted.groups)
        counted = replace(counted, groups=untimed)
    unbounded = tuple(replace(each, bounds={}) for each in counted.groups)
    plain = replace(counted, groups=unbounded, bounds={}, capacities={})
    return plan_with_bounds(plain, device, is_bounded(plan)) if plan.bounds and device is not None else plain
