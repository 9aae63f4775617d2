"""Whether a plan, or what a run counted, stays within the bounds of the plan."""

from __future__ import annotations

from dataclasses import asdict, replace

from tilec.bounds.plan.bound_violations import Finding, bound_violations
from tilec.ir.plan import Plan
from tilec.verify.outcome import Outcome

_HINT = (
    "The traffic that the plan says, or its bound, is wrong: make the plan anew, and report it if that does not help."
)


def within_bounds(outcome: Outcome, plan: Plan) -> Outcome:
    """The outcome with what moves less than the bounds of the plan.

    Less than is possible fails.  Less than was known is no failure: the report keeps it with its mapping under
    `below_known`, a counterexample to the mapspace.
    """
    traffic = outcome.report.get("traffic", {})
    counted = {name: {level: sum(n) for level, n in each["counted"].items()} for name, each in traffic.items()}
    found = bound_violations(plan, counted)
    report = dict(outcome.report)
    if known := dict.fromkeys(each for each in found if not each.proved):
        report["below_known"] = [_told(each) for each in known]
    wrong = next((each for each in found if each.proved), None)
    if wrong is None:
        return replace(outcome, report=report)
    report["verdict"] = "mismatch"
    report["below_least"] = [_told(each) for each in dict.fromkeys(found) if each.proved]
    if outcome.failure is not None:
        return replace(outcome, report=report)
    return replace(outcome, report=report, failure=str(wrong), hint=_HINT)


def _told(finding: Finding) -> dict[str, object]:
    return {key: value for key, value in asdict(finding).items() if key != "proved" and value != ""}
