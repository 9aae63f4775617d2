"""Speeds of a device for charts: bandwidth below every level of a plan, rates of compute units."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.ir.plan import Plan
from tilec.spec.device import ComputeUnit, DeviceSpec


@dataclass(frozen=True, slots=True)
class Roof:
    """A level that data of `level` pass on the way from and to the plan's next lower one, and its bytes/s."""

    level: str
    passes: str
    bandwidth: int


def roofs(plan: Plan, device: DeviceSpec) -> tuple[Roof, ...]:
    """For every level of a plan but the lowest, the device's levels from the plan's next lower one up to it.

    They include caches that the plan does not name; those without a bandwidth are left out.
    """
    result: list[Roof] = []
    names = device.level_names
    for below, level in zip(plan.levels, plan.levels[1:], strict=False):
        if below.name not in names or level.name not in names:
            continue
        for between in device.levels[device.index(below.name) : device.index(level.name)]:
            bandwidth = device.bandwidth(between.name)
            if bandwidth is not None:
                result.append(Roof(level.name, between.name, bandwidth))
    return tuple(result)


def units(plan: Plan, device: DeviceSpec) -> tuple[ComputeUnit, ...]:
    """Compute units that take types of the plan's tensors, the fastest first; all of the device if none does."""
    types = {tensor.ttype for tensor in plan.tensors.values()}
    fitting = [unit for unit in device.compute if types.issuperset(unit.inputs)]
    return tuple(sorted(fitting or device.compute, key=lambda unit: (-unit.rate, unit.name)))
