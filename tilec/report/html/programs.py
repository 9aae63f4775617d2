"""The tile program of every kernel of a plan (Welder, 3.3)."""

from __future__ import annotations

from tilec.ir.plan import Plan
from tilec.ir.program import Program
from tilec.lower.lowering import lower


def programs(plan: Plan) -> dict[str, Program]:
    """Map from kernel to its tile program, as `codegen` writes it into programs/. Raises PlanError for an illegal
    plan."""
    lowered: dict[str, Program] = {}
    for group in plan.groups:
        for variant in group.variants:
            if variant.kernel not in lowered:
                lowered[variant.kernel] = lower(group, variant, plan)
    return lowered
