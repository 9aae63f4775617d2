"""Bounds in a plan: how few bytes each of its groups can move at the levels of its device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilec.bounds.einsum.cache import cached
from tilec.errors import UnsupportedError

if TYPE_CHECKING:
    from tilec.ir.plan import Plan
    from tilec.spec.device import DeviceSpec


def plan_with_bounds(plan: Plan, device: DeviceSpec, known: bool = True) -> Plan:
    """The plan with the bounds of its groups at the device's levels: what is proved, and the best that is `known`.

    Raises UnsupportedError for products too large to be counted.
    """
    from tilec.bounds.levels import level_capacities
    from tilec.bounds.plan.plan_bounds import with_bounds

    return with_bounds(plan, level_capacities(device), cached if known else None)


def bounded_plan(plan: Plan, device: DeviceSpec | None) -> Plan:
    """The plan with the best that is known of its groups, found now where it was made without; as it is where its
    device is not known, or where products are too large to be counted."""
    if device is None or is_bounded(plan):
        return plan
    try:
        return plan_with_bounds(plan, device)
    except UnsupportedError:
        return plan


def is_bounded(plan: Plan) -> bool:
    """Whether a plan says the best that is known of any of its groups."""
    tables = (plan.bounds, *(group.bounds for group in plan.groups))
    return any(bound.known is not None for table in tables for bound in table.values())
