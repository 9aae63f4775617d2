"""Reasons why a product is exact though its activations may be rounded, as plans and `explain` tell them."""

from __future__ import annotations

from tilec.report.codes.page import Page
from tilec.scheduler.refusals import NOT_ROUNDED

_REMEDIES = {
    "no-unit": "Add the unit to `compute` in the device file if the device has one, or take a8 instead of a15.",
    "no-integers": "Quantise the weight to integers, such as `i4[32]*f16` in the recipe's `types`.",
    "no-blocks": "Take blocks that divide what is summed up; a product that transposes its activation stays exact.",
}


def pages() -> tuple[Page, ...]:
    """One page for each reason. Raises KeyError for a reason without one."""
    return tuple(
        Page(code, "rounding", meaning, _REMEDIES[code], f"a15: exact, {meaning}", says=(f"a(8|15): exact, {meaning}",))
        for code, meaning in NOT_ROUNDED.items()
    )
