"""Checks of the artifacts that the stages write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tilec.artifact import Artifact
from tilec.errors import several
from tilec.ir.codec import graph_from_json, plan_from_json
from tilec.ir.plan import Plan
from tilec.ir.verify.graph import check_graph
from tilec.ir.verify.plan import check_plan
from tilec.report.lint.costs import check_costs
from tilec.report.lint.finding import Finding, Place, pointer
from tilec.report.lint.plans import check_plan_file

Recount = Callable[[Artifact, Plan, str], Plan]
"""A legal plan of an artifact in a file, with the costs that its decisions come to."""


def check_artifact(artifact: Artifact, file: str, recount: Recount | None = None) -> Iterator[Finding]:
    """All errors and suspicious values of an artifact; stored costs are believed where nothing can `recount` them.
    Raises ArtifactError when it cannot be decoded."""
    if artifact.edited:
        message = f"the {artifact.kind} was edited, or what it was made from"
        yield Finding("edited", Place(file, pointer=pointer("artifact")), message)
    match artifact.kind:
        case "graph":
            yield from _fallback(artifact.body, file)
            for problem in check_graph(graph_from_json(artifact.body, file)):
                yield Finding("illegal", Place(file), problem)
        case "plan":
            yield from _fallback(artifact.body, file)
            stored = plan_from_json(artifact.body, file)
            counted = stored if recount is None or check_plan(stored) else recount(artifact, stored, file)
            yield from check_costs(stored, counted, file)
            yield from check_plan_file(counted, file)
        case "report":
            yield from _report(artifact.body, file)


def _fallback(body: Mapping[str, Any], file: str) -> Iterator[Finding]:
    placement = body.get("placement", {})
    fallback = placement.get("fallback", ())
    if fallback:
        operators = ", ".join(dict.fromkeys(entry["op"] for entry in fallback))
        message = f"{len(fallback)} of {several(placement['total'], 'node')} run on onnxruntime ({operators})"
        yield Finding("falls-back", Place(file, pointer=pointer("placement", "fallback")), message)


def _report(body: Mapping[str, Any], file: str) -> Iterator[Finding]:
    verdict = body.get("verdict")
    place = Place(file, pointer=pointer("verdict"))
    if verdict == "mismatch":
        first = body.get("diverging", {})
        where = f"; first diverging group: {first['group']} ({first.get('origin', '')})" if first.get("group") else ""
        yield Finding("mismatch", place, f"the verdict is mismatch{where}")
    elif verdict != "pass":
        yield Finding("unverified", place, str(body.get("because") or f"the verdict is {verdict}"))
