"""The work of rescaling a reduction that shares its loop with others (W09)."""

from __future__ import annotations

from tilec.ir.expr import Call, Expr, children, rebuild, variables
from tilec.lower.shared_loops import BEFORE
from tilec.scheduler.graph_passes.rematerialize import arithmetic


def operations_by_iterators(rescale: Expr) -> dict[frozenset[str], int]:
    """Operations of an expression by the iterators that they depend on; former values are read like any others."""
    found: dict[frozenset[str], int] = {}

    def visit(expr: Expr) -> Expr:
        if isinstance(expr, Call) and expr.fn == BEFORE:
            return visit(expr.args[0])
        parts = [visit(part) for part in children(expr)]
        rest = iter(parts)
        plain = rebuild(expr, lambda _: next(rest))
        own = arithmetic(plain) - sum(map(arithmetic, parts))
        moved = frozenset(variables(plain))
        found[moved] = found.get(moved, 0) + own
        return plain

    visit(rescale)
    return {moved: count for moved, count in found.items() if count}
