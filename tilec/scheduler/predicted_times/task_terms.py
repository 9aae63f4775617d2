"""The tasks of the groups of a plan at a core's level: their number, and what their time is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilec.ir.canonical_group import tensor_names
from tilec.ir.intervals import Candidates
from tilec.ir.plan import Plan
from tilec.scheduler.predicted_times.core_time import core_terms
from tilec.scheduler.predicted_times.planned_group import PlannedGroup, planned_groups
from tilec.scheduler.target_model import TargetModel


@dataclass(frozen=True, slots=True)
class TaskTerms:
    """The tasks of a group, the seconds of one on a core, and the seconds in which all draw `bytes` bytes from the
    lowest level, alone."""

    tasks: int
    task: float
    drawn: float
    bytes: float


def task_terms(plan: Plan, target: TargetModel) -> Mapping[str, TaskTerms]:
    """What the times of the groups of a plan of known sizes are made of, by name; a core's level is the one above the
    lowest."""
    terms: dict[str, TaskTerms] = {}
    by_kernel: dict[object, TaskTerms] = {}
    for name, planned in planned_groups(plan, target, Candidates()).items():
        constant = tuple(tensor in planned.constants for tensor in tensor_names(planned.group.nodes))
        key = planned.variant.kernel, constant
        if key not in by_kernel:
            by_kernel[key] = _terms(planned, target)
        terms[name] = by_kernel[key]
    return terms


def _terms(planned: PlannedGroup, target: TargetModel) -> TaskTerms:
    of = core_terms(planned, planned.block, target, {})
    tasks, drawn = int(np.max(of.tasks)), float(np.max(of.drawn))
    rate = min(target.draw * min(tasks, target.cores), target.links[target.core])
    return TaskTerms(tasks, float(np.max(of.task)), drawn, drawn * rate)
