"""The predicted time of every group of a plan: a function of the plan and its device alone, not of how the plan came to
be."""

from __future__ import annotations

from dataclasses import replace

from tilec.ir.canonical_group import tensor_names
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Group, Plan
from tilec.scheduler.building.group_builder import picoseconds
from tilec.scheduler.predicted_times.level_time import group_seconds
from tilec.scheduler.predicted_times.planned_group import planned_groups
from tilec.scheduler.target_model import TargetModel


def with_times(plan: Plan, target: TargetModel, numbers: Candidates) -> Plan:
    """The plan with the predicted time of its groups; symbols count as the sizes in `numbers`."""
    planned = planned_groups(plan, target, numbers)
    by_kernel: dict[object, int] = {}
    groups: list[Group] = []
    for group in plan.groups:
        of = planned[group.name]
        constant = tuple(tensor in of.constants for tensor in tensor_names(of.nodes))
        key = (group.variants[0].kernel, constant)
        if key not in by_kernel:
            by_kernel[key] = picoseconds(group_seconds(of))
        groups.append(replace(group, cost=replace(group.cost, picoseconds=by_kernel[key])))
    return replace(plan, groups=tuple(groups))
