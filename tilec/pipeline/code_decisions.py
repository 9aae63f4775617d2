"""How `schedule` gets the rules of a device's back end, and hands it what they decide: one stage may not import
another, so they are bound here."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tilec.codegen.backend import backend_of
from tilec.scheduler.building.code_decisions import no_announcement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilec.ir.plan import Group, Plan
    from tilec.ir.program import Program
    from tilec.pipeline.job import Job
    from tilec.scheduler.building.code_decisions import Announce, Decide
    from tilec.spec.device import DeviceSpec


def begin_compiler(job: Job) -> None:
    """Let another process import what compiles a job's kernels, where there are any."""
    from tilec.codegen import driver

    if job.device is not None and job.ahead is not None:
        driver.begin_compiler(job.device, job.ahead)


def announce_for(job: Job) -> Announce:
    """Lets other processes compile each kernel of a job's plan as soon as it is decided (A17), where there are any."""
    device, ahead = job.device, job.ahead
    backend = backend_of(device) if device is not None else None
    if device is None or ahead is None or backend is None or backend.begin is None:
        return no_announcement
    begin, options = backend.begin, job.recipe.codegen

    def announce(plan: Plan, groups: Sequence[Group], program: Program, code: object) -> None:
        begin(plan, groups, program, code, device, options, job.cache, ahead)

    return announce


def decide_for(device: DeviceSpec) -> Decide | None:
    """The rules for a device; None where its back end has none, or it has no back end."""
    backend = backend_of(device)
    return None if backend is None or backend.decide is None else partial(backend.decide, device)
