"""Limits on what passes: counted traffic against the lower bounds of the plan, and the share of verified groups."""

from __future__ import annotations

from dataclasses import asdict, replace

from tilec.bounds.plan.bound_violations import Finding, bound_violations
from tilec.errors import several
from tilec.ir.bind_plan import bind_plan, plan_sizes
from tilec.ir.plan import Plan
from tilec.verify.outcome import Outcome

_HINT = (
    "The traffic that the plan says, or its bound, is wrong: make the plan anew, and report it if that does not help."
)

_ALL = "--per-group verifies all groups where the code runs, --inputs FILE.npz all of them on the tile machine."


def within_bounds(outcome: Outcome, plan: Plan) -> Outcome:
    """The outcome with every traffic below a bound of the plan.

    Traffic below a proved bound is a failure. Traffic below the best known mapping is none: the report lists it with
    the mapping under `below_known`, as a counterexample to the mapspace. Bounds of a plan with symbols, and the traffic
    counted of it, are those at the sizes that it is made for.
    """
    traffic = outcome.report.get("traffic", {})
    counted = {name: {level: sum(n) for level, n in each["counted"].items()} for name, each in traffic.items()}
    violations = bound_violations(bind_plan(plan, plan_sizes(plan)), counted)
    report = dict(outcome.report)
    if known := dict.fromkeys(each for each in violations if not each.proved):
        report["below_known"] = [_entry(each) for each in known]
    wrong = next((each for each in violations if each.proved), None)
    if wrong is None:
        return replace(outcome, report=report)
    report["verdict"] = "mismatch"
    report["below_least"] = [_entry(each) for each in dict.fromkeys(violations) if each.proved]
    if outcome.failure is not None:
        return replace(outcome, report=report)
    return replace(outcome, report=report, failure=str(wrong), hint=_HINT)


def enough_groups(outcome: Outcome, least: float) -> Outcome:
    """The outcome, refused when fewer than the share `least` of the groups were verified."""
    groups = outcome.report.get("groups", {"total": 0, "verified": 0})
    verified, total = groups["verified"], groups["total"]
    unverified = outcome.report["verdict"] == "unverified"
    if outcome.failure is not None or not least or (verified >= least * total and not unverified):
        return outcome
    report = {**outcome.report, "verdict": "refused", "least_share": least}
    failure = f"{verified} of {several(total, 'group')} were verified, and a share of {least:g} is asked for"
    return replace(outcome, report=report, failure=failure, hint=_ALL)


def _entry(finding: Finding) -> dict[str, object]:
    return {key: value for key, value in asdict(finding).items() if key != "proved" and value != ""}
