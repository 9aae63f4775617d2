"""Edges between groups as plain data: why each is not connected, and what the codes mean."""

from __future__ import annotations

from typing import Any

from tilec.ir.plan import Plan
from tilec.report.codes import edges


def refusals(plan: Plan) -> list[dict[str, Any]]:
    """Every refusal with the groups (by number, null where there is none) that the edge would join."""
    home = {node.name: n for n, group in enumerate(plan.groups) for node in group.nodes}
    found = []
    for refusal in plan.refusals:
        tensor, _, node = refusal.edge.partition("->")
        ends = {"from": home.get(tensor), "to": home.get(node)}
        found.append({"code": refusal.code, "edge": refusal.edge, "numbers": dict(refusal.numbers), **ends})
    return found


def codes(plan: Plan) -> dict[str, dict[str, Any]]:
    """What the codes that occur mean, what to do, and what their numbers are."""
    used = {refusal.code for refusal in plan.refusals}
    return {
        page.code: {"meaning": page.meaning, "numbers": dict(page.numbers), "remedy": page.remedy}
        for page in edges.pages()
        if page.code in used
    }
