"""The answer to a question about a plan: text, one JSON object, and notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tilec.analysis.explain.edge import explain_edge
from tilec.analysis.explain.group import explain_group
from tilec.analysis.explain.names import edge_named, group_named, node_named
from tilec.analysis.explain.node import explain_node
from tilec.analysis.explain.replay import Replay
from tilec.analysis.explain.summary import same, summarised
from tilec.analysis.scenario_figures import ScenarioFigures
from tilec.analysis.size_variants import PlanAt
from tilec.artifact import encode
from tilec.ir.bind_plan import bind_plan, plan_sizes
from tilec.ir.plan import Plan
from tilec.report.explain.edge_text import edge_text
from tilec.report.explain.group_text import group_text, node_text
from tilec.report.explain.scenario_text import scenario_lines, scenario_rows
from tilec.report.explain.summary_text import summary_text


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` for people, `json` for programs, `notes` on the whole answer."""

    text: str
    json: dict[str, Any]
    notes: tuple[str, ...]


def require(plan: Plan, *, group: str | None = None, edge: str | None = None, node: str | None = None) -> None:
    """Refuse a question about an edge, group or node that the plan does not have, before the search is run. Raises
    UsageError."""
    if group is not None:
        group_named(plan, group)
    if edge is not None:
        edge_named(plan, edge)
    if node is not None:
        node_named(plan, node)


def answered(
    replay: Replay,
    plan: Plan,
    called: str,
    *,
    group: str | None = None,
    edge: str | None = None,
    node: str | None = None,
    at: Callable[[Plan], PlanAt] | None = None,
    scenarios: Sequence[ScenarioFigures] = (),
) -> Answer:
    """The answer to a question about a plan whose search was run again; a summary without a question.

    `at` gives a plan with symbols at the sizes that figures are asked for; without it, they are those of the plan.
    `scenarios` are the figures of its scenarios. `called` is the plan's name on the command line. Raises UsageError for
    a group, edge or node that the plan does not have.
    """
    agrees = same(plan, replay.plan)
    of = plan if agrees else replay.plan
    differs = (
        "the search does not come to this plan again: it was edited, tuned, or made by another version; what "
        "is shown is the search's own plan"
    )
    notes = () if agrees else (differs,)
    there = at(of) if at is not None and of.symbols else _as_planned(of)
    if edge is not None:
        explanation = explain_edge(replay, *edge_named(of, edge))
        return Answer(edge_text(explanation), {"edge": _plain(explanation), "same": agrees}, notes)
    if group is not None:
        about = explain_group(replay, of, group_named(of, group), there)
        return Answer(group_text(about), {"group": _plain(about), "same": agrees}, notes)
    if node is not None:
        where = explain_node(replay, of, node_named(of, node))
        return Answer(node_text(where), {"node": _plain(where), "same": agrees}, notes)
    summary = replace(summarised(replay, of, there), same=agrees)
    told = {"scenarios": scenario_rows(scenarios)} if scenarios else {}
    return Answer(
        summary_text(summary, called, scenario_lines(scenarios)), {"plan": {**_plain(summary), **told}}, notes
    )


def _as_planned(plan: Plan) -> PlanAt | None:
    """A plan with symbols at the sizes that it is made for; None for any other."""
    sizes = plan_sizes(plan)
    return PlanAt(bind_plan(plan, sizes), sizes) if plan.symbols else None


def _plain(explanation: object) -> Any:
    return encode(explanation)
