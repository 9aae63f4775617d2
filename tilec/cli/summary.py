"""Final lines of a compilation: placement, plan, verification; and the same as JSON."""

from collections.abc import Mapping
from typing import Any

from tilec.analysis.fusion_kind import kind_of
from tilec.analysis.ratios import Ratio, group_ratios, plan_ratio, ratio_to_json, times_text
from tilec.analysis.totals import at_level, lowest, pair, predicted, traffic, transactions, unfused
from tilec.artifact import Json
from tilec.errors import several
from tilec.ir.algebra import simplify
from tilec.ir.bind_plan import plan_sizes
from tilec.ir.expr import Const, Expr, constant_value
from tilec.ir.plan import Plan
from tilec.ir.sizes import sizes_text
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
    line = f"placement: {counts.get('compiled', 0)} of {several(counts.get('total', 0), 'node')} compiled"
    fallback = counts.get("fallback", ())
    if fallback:
        operators = ", ".join(dict.fromkeys(entry["op"] for entry in fallback))
        line += f", {len(fallback)} on onnxruntime ({operators})"
    return line


def plan_summary(plan: Plan) -> dict[str, Json]:
    """Groups by kind, traffic between the lowest level and the next and at every pair of levels in bytes with the
    bounds of all groups together, transactions of the lowest level, predicted time (null where there is none); of a
    plan with symbols the sizes that all these are for."""
    kinds = [kind_of(group) for group in plan.groups]
    bottom, ratio = plan.levels[0].name, plan_ratio(plan)
    return {
        "bounds": ratio_to_json(ratio) if ratio is not None else None,
        "bounds_by_level": {pair(plan, at.level): ratio_to_json(at) for at in _ratios(plan)},
        "groups": len(kinds),
        "level": bottom,
        "levels": {pair(plan, level.name): _value(at_level(plan, level.name)) for level in plan.levels[1:]},
        "predicted_picoseconds": predicted(plan) or None,
        "register_fused": kinds.count("register"),
        "single": kinds.count("single"),
        **({"sizes": dict(plan_sizes(plan))} if plan.symbols else {}),
        "stitched": kinds.count("stitched"),
        "traffic": _value(traffic(plan)),
        "transactions": _value(transactions(plan, bottom)),
        "unfused_traffic": _value(unfused(plan)),
    }


def _ratios(plan: Plan) -> list[Ratio]:
    ratios = (plan_ratio(plan, level) for level in plan.bounds)
    return [ratio for ratio in ratios if ratio is not None]


def plan_line(plan: Plan, sizes: Mapping[str, int] | None = None) -> str:
    """`plan: 37 groups (12 stitched, 21 register-fused, 4 single), dram->l2 98 MiB (unfused 112), l2->smem 604 MiB
    (unfused 812), predicted 1.2 ms`; with bounds `(unfused 112, attainable 91: 1.06x)`,
    where several units need tasks `(unfused 812, attainable 91: 6.63x, parallel 403: 1.50x)`.

    The first pair of levels is the lowest; the other that is told is filled with tiles. All figures of a plan with
    symbols are for the sizes that it is made for, or for the `sizes` that it is bound to: ` at batch=1, seq=128`.
    """
    summary = plan_summary(plan)
    if not plan.groups:
        return "plan: no groups, all runs on onnxruntime" if plan.calls else "plan: no groups, nothing is computed"
    groups = f"{summary['stitched']} stitched, {summary['register_fused']} register-fused, {summary['single']} single"
    levels = dict.fromkeys((lowest(plan), *(name for name in plan.unfused)))
    moved = ", ".join(_pair(plan, level) for level in levels)
    time = f", predicted {time_text(predicted(plan))}" if predicted(plan) else ""
    at = sizes or plan_sizes(plan)
    place = f" at {sizes_text(at)}" if at else ""
    return f"plan: {several(len(plan.groups), 'group')} ({groups}), {moved}{time}{place}"


def _pair(plan: Plan, level: str) -> str:
    """`dram->l2 604 MiB (unfused 812, attainable 571: 1.06x)`."""
    planned, apart = at_level(plan, level), simplify(plan.unfused.get(level, Const(0)))
    size, other = constant_value(planned), constant_value(apart)
    if size is None or other is None:
        return f"{pair(plan, level)} {text_of(planned)} bytes (unfused {text_of(apart)})"
    ratio = plan_ratio(plan, level)
    unit, shift = next(((unit, shift) for unit, shift in _UNITS if max(size, other) >= 10 << shift), ("B", 0))
    known = _known(ratio, shift) if ratio is not None else ""
    text = f"{_short(size / (1 << shift))} {unit} (unfused {_short(other / (1 << shift))}{known})"
    return f"{pair(plan, level)} {text}"


def _known(ratio: Ratio, shift: int) -> str:
    """The best known traffic with the ratio to it, of one unit and in tasks for all units."""
    if ratio.bound.known is None:
        return ""
    text = f", attainable {_short(ratio.bound.known / (1 << shift))}: {times_text(ratio)}"
    if ratio.bound.parallel is None or ratio.parallel_times is None:
        return text
    return f"{text}, parallel {_short(ratio.bound.parallel / (1 << shift))}: {ratio.parallel_times:.2f}x"


def verified_line(report: Mapping[str, Any]) -> str:
    """`verified on: host`, or the tile machine or nothing, with the reason and the verified part of the model; of a
    model with symbols at how many sizes, and how many of its variants ran; and what other inputs were judged by, or
    why they were not."""
    why = f" ({report['because']})" if report.get("because") else ""
    groups = report.get("groups", {"total": 0, "verified": 0})
    part = (
        f": {groups['verified']} of {several(groups['total'], 'group')}" if groups["verified"] < groups["total"] else ""
    )
    if part and report.get("outputs"):  # whole outputs were compared, too
        part = f": all outputs, and{part[1:]} one by one"
    if report.get("groups", {}).get("total") == 0 and "samples" not in report:
        part = ": all on onnxruntime"
    worst = [f"{name} {text}" for name, text in (_judged(*each) for each in report.get("outputs", {}).items()) if text]
    against = f", against {report['reference']}: {report['reference_because']}" if "reference_because" in report else ""
    return "; ".join(
        [
            f"verified on: {report['verified_on']}{why}{_sampled(report)}{part}{against}",
            *_otherwise(report),
            *worst,
            *_far(report),
        ]
    )


def _otherwise(report: Mapping[str, Any]) -> list[str]:
    """`1 case against graph: REASON` of inputs that the reference has no answer for, `1 case left out: REASON` of those
    that were not compared."""
    found: dict[str, list[str]] = {}
    for each in report.get("refused", ()):
        how = f"against {each['reference']}" if each["reference"] != "none" else "left out"
        found.setdefault(how, []).append(each["because"])
    for each in report.get("left_out", ()):
        found.setdefault("left out", []).append(each["because"])
    return [f"{len(why)} {'case' if len(why) == 1 else 'cases'} {how}: {why[0]}" for how, why in found.items()]


def _far(report: Mapping[str, Any]) -> list[str]:
    """`accuracy: logits 8.3e-03 from the float model, 2e-02 allowed`, of a model with a float model behind it."""
    entry = report.get("accuracy", {})
    far = [f"{name} {float(each['relative']):.1e}" for name, each in entry.get("outputs", {}).items()]
    limit = f", {entry['limit']:g} allowed" if "limit" in entry else ""
    if not far:
        return [f"accuracy: {entry['because']}"] if "because" in entry else []
    return [f"accuracy: {', '.join(far)} from the float model{limit}"]


def _sampled(report: Mapping[str, Any]) -> str:
    """` at 8 sizes, 29 of 30 variants ran`, empty for a model without symbols."""
    if "samples" not in report:
        return ""
    variants = [each for group in report["variants"].values() for each in group]
    ran, count = sum(bool(each["samples"]) for each in variants), len(report["samples"])
    plural = "variant" if len(variants) == 1 else "variants"
    part = f"{ran} of {len(variants)} {plural} ran" if variants else "all on onnxruntime"
    return f" at {count} {'size' if count == 1 else 'sizes'}, {part}"


def _judged(name: str, output: Mapping[str, Any]) -> tuple[str, str]:
    """The output's name, and what is special about its verdict: nothing when it is exact or within rounding."""
    against = " by ONNX's reference evaluator, onnxruntime differs" if "against" in output else ""
    if output.get("verdict") == "ill-conditioned":
        moves = f"{float(output['moves']):.1e}"
        return name, f"is ill-conditioned{against}: it moves by {moves} of its largest value when inputs are rounded"
    return name, f"is right{against}" if against else ""


def _value(expr: Expr) -> Json:
    size = constant_value(simplify(expr))
    return text_of(expr) if size is None else size


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def plan_details(plan: Plan) -> list[str]:
    """One line per group: operators, kernel, ratio to the best known traffic (-v)."""
    lines = []
    for group in plan.groups:
        operators = " ".join(dict.fromkeys(node.op or node.name for node in group.nodes))
        moved = "".join(f", {each.level} {_beside(each)}" for each in group_ratios(group))
        lines.append(f"  {group.name}: {operators} -> {group.variants[0].kernel}{moved}")
    return lines


def _beside(ratio: Ratio) -> str:
    """`4.00 MiB, 1.27x of 3.15 MiB known, 1.10x of 3.64 MiB in parallel, at least 1.50 MiB`."""
    known = f"{times_text(ratio)} of {bytes_text(ratio.bound.known)} known, " if ratio.bound.known is not None else ""
    if ratio.bound.parallel is not None and ratio.parallel_times is not None:
        known += f"{ratio.parallel_times:.2f}x of {bytes_text(ratio.bound.parallel)} in parallel, "
    return f"{bytes_text(ratio.moved)}, {known}at least {bytes_text(ratio.bound.least)}"


def per_group_line(report: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """`per group: 111 of 111 compared, all right`, or the first that diverges: group, tensor, worst element."""
    compared = report["per_group"]
    head = f"per group: {compared['compared']} of {compared['total']} compared"
    if not compared["diverging"]:
        return f"{head}, all right"
    first = compared["diverging"][0]
    numbers = run.get("groups", {}).get(first["group"], {})
    off = f" (off by {float(numbers['error']):.1e}, {first['tolerance']:.1e} is allowed)" if numbers else ""
    where = f"group {first['group']} ({first['origin']}), tensor {first['tensor']}"
    return f"{head}, {len(compared['diverging'])} wrong; first divergence: {where}: {numbers.get('reason', '')}{off}"


def verify_details(report: Mapping[str, Any], run: Mapping[str, Any]) -> list[str]:
    """One line per draw and output: error and tolerance; groups below the best known traffic; what was counted of GPU
    kernels (-v)."""
    allowed = report.get("outputs", {})
    below = [
        f"  {each['group']} moves {each['moved']} bytes at {each['level']}, less than the known {each['bound']}"
        f" ({each['because']}): {each['mapping']}"
        for each in report.get("below_known", ())
    ]
    return (
        below
        + _sampled_details(report)
        + [f"  {name}: {_counted(each)}" for name, each in report.get("kernels", {}).items()]
        + [
            f"  {name}, {_inputs(draw)}: off by {float(error):.1e}"
            + (f", {allowed[name]['tolerance']:.1e} is allowed" if name in allowed else "")
            for draw in run.get("draws", ())
            for name, error in draw["errors"].items()
        ]
    )


def _counted(kernel: Mapping[str, Any]) -> str:
    """`128 sectors read (64 planned, 60 at least), 16 written (16 at least), 40 wavefronts (40 at least)`."""
    parts = []
    for access, text in (("read", "sectors read"), ("write", "written")):
        each = kernel["sectors"][access]
        planned = f"{each['planned']} planned, " if "planned" in each else ""
        parts.append(f"{each['counted']} {text} ({planned}{each['ideal']} at least)")
    if "wavefronts" in kernel:
        parts.append(f"{kernel['wavefronts']['counted']} wavefronts ({kernel['wavefronts']['ideal']} at least)")
    if "needless_barriers" in kernel:
        parts.append(f"needless barriers in lines {', '.join(map(str, kernel['needless_barriers']))}")
    return ", ".join(parts)


def _sampled_details(report: Mapping[str, Any]) -> list[str]:
    """What holds of the programs of a model with symbols, and the variants that did not run."""
    if "programs" not in report:
        return []
    programs = report["programs"]
    followed = f"{programs['followed']} of {programs['total']}"
    return [
        f"  programs: {programs['all_sizes']} hold at all sizes; {programs['at_samples']} at samples, of {followed}",
        *(
            f"  {group}: no sample is served by {each['kernel']} ({each['guard']})"
            for group, variants in report["variants"].items()
            for each in variants
            if not each["samples"]
        ),
    ]


def _inputs(draw: Mapping[str, Any]) -> str:
    """The origin of a set of inputs: a seed or a file, and the sizes of symbols."""
    sizes = "".join(f", {symbol}={size}" for symbol, size in draw.get("sizes", {}).items())
    return (str(draw["inputs"]) if "inputs" in draw else f"seed {draw['seed']}") + sizes
