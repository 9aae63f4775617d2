"""Edges between groups as plain data: the reason why each is not connected, and the meanings of codes."""

from __future__ import annotations

from typing import Any

from tilec.ir.plan import Plan
from tilec.report.codes import edges


def refusals(plan: Plan) -> list[dict[str, Any]]:
    """Every refusal with the groups at both ends of the edge (by number, null where there is none)."""
    home = {node.name: n for n, group in enumerate(plan.groups) for node in group.nodes}
    rows = []
    for refusal in plan.refusals:
        tensor, _, node = refusal.edge.partition("->")
        ends = {"from": home.get(tensor), "to": home.get(node)}
        rows.append({"code": refusal.code, "edge": refusal.edge, "numbers": dict(refusal.numbers), **ends})
    return rows


def codes(plan: Plan) -> dict[str, dict[str, Any]]:
    """Meaning, remedy and numbers of the codes that occur."""
    used = {refusal.code for refusal in plan.refusals}
    return {
        page.code: {"meaning": page.meaning, "numbers": dict(page.numbers), "remedy": page.remedy}
        for page in edges.pages()
        if page.code in used
    }
