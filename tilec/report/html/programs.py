"""The tile program of every kernel of a plan, as text (Welder, 3.3)."""

from __future__ import annotations

from tilec.ir.plan import Plan
from tilec.ir.program_text import program_text
from tilec.lower.lowering import lower


def programs(plan: Plan) -> dict[str, str]:
    """Map from kernel to its tile program, as `codegen` writes it into programs/. Raises PlanError for an illegal
    plan."""
    texts: dict[str, str] = {}
    for group in plan.groups:
        for variant in group.variants:
            if variant.kernel not in texts:
                texts[variant.kernel] = program_text(lower(group, variant, plan))
    return texts
