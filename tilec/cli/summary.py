"""Final lines of a compilation: placement, plan, verification; and the same as JSON."""

from collections.abc import Mapping
from typing import Any

from tilec.analysis.fusion_kind import kind_of
from tilec.analysis.ratios import Ratio, group_ratios, plan_ratio, ratio_to_json, times_text
from tilec.analysis.totals import predicted, traffic, transactions
from tilec.artifact import Json
from tilec.ir.algebra import simplify
from tilec.ir.expr import Expr, constant_value
from tilec.ir.plan import Plan
from tilec.ir.text import text_of
from tilec.report.formatting import bytes_text, time_text

_UNITS = (("GiB", 30), ("MiB", 20), ("KiB", 10))


def placement(body: Mapping[str, Any]) -> dict[str, Json]:
    """Numbers of compiled nodes and of nodes that fall back, from a graph or plan artifact."""
    counts = body.get("placement", {})
    fallback = [dict(entry) for entry in counts.get("fallback", ())]
    return {"compiled": counts.get("compiled", 0), "fallback": fallback, "total": counts.get("total", 0)}


def placement_line(body: Mapping[str, Any]) -> str:
    """`placement: 409 of 412 nodes compiled, 3 on onnxruntime (NonMaxSuppression)`."""
    counts = body.get("placement", {})
    line = f"placement: {counts.get('compiled', 0)} of {counts.get('total', 0)} nodes compiled"
    fallback = counts.get("fallback", ())
    if fallback:
        operators = ", ".join(dict.fromkeys(entry["op"] for entry in fallback))
        line += f", {len(fallback)} on onnxruntime ({operators})"
    return line


def plan_summary(plan: Plan) -> dict[str, Json]:
    """Groups by kind, traffic between the lowest level and the next, in bytes, and transactions of the lowest (an
    expression while unbound), predicted time (null where there is none)."""
    kinds = [kind_of(group) for group in plan.groups]
    lowest = plan.levels[0].name
    ratio = plan_ratio(plan)
    return {
        "bounds": ratio_to_json(ratio) if ratio is not None else None,
        "groups": len(kinds),
        "level": lowest,
        "predicted_picoseconds": predicted(plan) or None,
        "register_fused": kinds.count("register"),
        "single": kinds.count("single"),
        "stitched": kinds.count("stitched"),
        "traffic": _value(traffic(plan)),
        "transactions": _value(transactions(plan, lowest)),
        "unfused_traffic": _value(plan.unfused_traffic),
    }


def plan_line(plan: Plan) -> str:
    """`plan: 37 groups (12 stitched, 21 register-fused, 4 single), DRAM traffic 604 MiB (unfused 812), predicted
    1.2 ms`; with its bounds `(unfused 812, attainable 571: 1.06x)`."""
    found = plan_summary(plan)
    groups = f"{found['stitched']} stitched, {found['register_fused']} register-fused, {found['single']} single"
    planned, unfused = traffic(plan), simplify(plan.unfused_traffic)
    text = f"plan: {found['groups']} groups ({groups}), {plan.levels[0].name.upper()} traffic "
    time = f", predicted {time_text(predicted(plan))}" if predicted(plan) else ""
    size, other = constant_value(planned), constant_value(unfused)
    if size is None or other is None:
        return f"{text}{text_of(planned)} bytes (unfused {text_of(unfused)}){time}"
    ratio = plan_ratio(plan)
    unit, shift = next(((unit, shift) for unit, shift in _UNITS if max(size, other) >= 10 << shift), ("B", 0))
    known = _known(ratio, shift) if ratio is not None else ""
    return f"{text}{_short(size / (1 << shift))} {unit} (unfused {_short(other / (1 << shift))}{known}){time}"


def _known(ratio: Ratio, shift: int) -> str:
    """What is attainable by what is known, and how many groups have a part in traffic that is not counted."""
    if ratio.bound.known is None:
        return ""
    uncounted = f", {ratio.uncounted} groups not all counted" if ratio.uncounted else ""
    return f", attainable {_short(ratio.bound.known / (1 << shift))}: {times_text(ratio)}{uncounted}"


def verified_line(report: Mapping[str, Any]) -> str:
    """`verified on: host`, or what it was instead, why, and how much of the model."""
    why = f" ({report['because']})" if report.get("because") else ""
    groups = report.get("groups", {"total": 0, "verified": 0})
    part = f": {groups['verified']} of {groups['total']} groups" if groups["verified"] < groups["total"] else ""
    return f"verified on: {report['verified_on']}{why}{part}"


def _value(expr: Expr) -> Json:
    size = constant_value(simplify(expr))
    return text_of(expr) if size is None else size


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def plan_details(plan: Plan) -> list[str]:
    """One line a group: its operators, kernel, and how often it moves the least known (-v)."""
    lines = []
    for group in plan.groups:
        operators = " ".join(dict.fromkeys(node.op or node.name for node in group.nodes))
        moved = "".join(f", {each.level} {_beside(each)}" for each in group_ratios(group))
        told = moved or (", traffic not all counted" if plan.bounds else "")
        lines.append(f"  {group.name}: {operators} -> {group.variants[0].kernel}{told}")
    return lines


def _beside(ratio: Ratio) -> str:
    """`4.00 MiB, 1.27x of 3.15 MiB known, at least 1.50 MiB`."""
    known = f"{times_text(ratio)} of {bytes_text(ratio.bound.known)} known, " if ratio.bound.known is not None else ""
    return f"{bytes_text(ratio.moved)}, {known}at least {bytes_text(ratio.bound.least)}"


def per_group_line(report: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """`per group: 111 of 111 compared, all right`, or the first that diverges: group, tensor, worst element."""
    found = report["per_group"]
    head = f"per group: {found['compared']} of {found['total']} compared"
    if not found["diverging"]:
        return f"{head}, all right"
    first = found["diverging"][0]
    told = run.get("groups", {}).get(first["group"], {})
    off = f" (off by {float(told['error']):.1e}, {first['tolerance']:.1e} is allowed)" if told else ""
    where = f"group {first['group']} ({first['origin']}), tensor {first['tensor']}"
    return f"{head}, {len(found['diverging'])} wrong; first divergence: {where}: {told.get('reason', '')}{off}"


def verify_details(report: Mapping[str, Any], run: Mapping[str, Any]) -> list[str]:
    """One line a draw and output: the error against what is allowed; groups below what was known (-v)."""
    allowed = report.get("outputs", {})
    below = [
        f"  {each['group']} moves {each['moved']} bytes at {each['level']}, less than the known {each['bound']}"
        f" ({each['because']}): {each['mapping']}"
        for each in report.get("below_known", ())
    ]
    return below + [
        f"  {name}, {_inputs(draw)}: off by {float(error):.1e}"
        + (f", {allowed[name]['tolerance']:.1e} is allowed" if name in allowed else "")
        for draw in run.get("draws", ())
        for name, error in draw["errors"].items()
    ]


def _inputs(draw: Mapping[str, Any]) -> str:
    """Which inputs a draw is: of a seed, or of a file."""
    return str(draw["inputs"]) if "inputs" in draw else f"seed {draw['seed']}"
