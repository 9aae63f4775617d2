"""Two plans as plain data for a page that shows them side by side."""

from __future__ import annotations

from typing import Any

from tilec.analysis.diff import diff_plans
from tilec.analysis.match import families, match_nodes
from tilec.ir.plan import Plan
from tilec.report.diff_json import diff_to_json


def comparison(old: Plan, new: Plan) -> dict[str, Any]:
    """The data of `tilec diff`, and the numbers of the groups on both sides that correspond."""
    places = [{group.name: n for n, group in enumerate(plan.groups)} for plan in (old, new)]
    related = [
        [[places[side][group.name] for group in groups] for side, groups in enumerate((family.old, family.new))]
        for family in families(old, new, match_nodes(old, new))
    ]
    return {**diff_to_json(diff_plans(old, new)), "families": related}
