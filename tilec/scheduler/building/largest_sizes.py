"""Capacity at the largest sizes of symbols: what a group holds must fit explicit levels at every size (B09, W24)."""

from __future__ import annotations

from dataclasses import replace

from tilec.ir.plan import Plan, Refusal, Variant
from tilec.ir.sizes import ANY_SIZE, SymbolRange
from tilec.lower.checks.check_plan import overflows
from tilec.lower.lowering import lower

ENDLESS = 1 << 32
"""Stands for the upper end of a size that has none."""


def overflows_at_largest(plan: Plan, variant: Variant) -> tuple[Refusal, ...]:
    """The levels that the group of a plan of one group exceeds under a variant at the largest sizes that it runs at.
    Raises PlanError where no program comes of it."""
    ranges = {s: _ended(plan.symbol_ranges.get(s, ANY_SIZE)) for s in plan.symbols}
    return overflows(lower(plan.groups[0], variant, replace(plan, symbol_ranges=ranges)))


def _ended(sizes: SymbolRange) -> SymbolRange:
    """A range with an upper end: what grows with a symbol that has none fits nowhere."""
    return sizes if sizes.high is not None else replace(sizes, high=max(ENDLESS, sizes.least))
