"""The tile program of every kernel of a plan, as text (W31)."""

from __future__ import annotations

from tilec.ir.plan import Plan
from tilec.ir.program_text import program_text
from tilec.lower.lowering import lower


def programs(plan: Plan) -> dict[str, str]:
    """Kernel -> its tile program, as `codegen` writes it into programs/. Raises PlanError for an illegal plan."""
    found: dict[str, str] = {}
    for group in plan.groups:
        for variant in group.variants:
            if variant.kernel not in found:
                found[variant.kernel] = program_text(lower(group, variant, plan))
    return found
