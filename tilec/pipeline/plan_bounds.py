"""Bounds in a plan: how few bytes each of its groups can move at the levels of its device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilec.bounds.einsum.cache import cached

if TYPE_CHECKING:
    from tilec.ir.plan import Plan
    from tilec.spec.device import DeviceSpec


def plan_with_bounds(plan: Plan, device: DeviceSpec) -> Plan:
    """The plan with the bounds of its groups at the device's levels.

    Raises UnsupportedError for products too large to be counted.
    """
    from tilec.bounds.levels import level_capacities
    from tilec.bounds.plan.plan_bounds import with_bounds

    return with_bounds(plan, level_capacities(device), cached)
