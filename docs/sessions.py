"""What commands of the manual print, from plans that are made anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tilec.analysis.diff import diff_plans
from tilec.analysis.limits import exceeded, parse_limits
from tilec.importer import import_model
from tilec.ir.plan import Plan
from tilec.pipeline.code_decisions import decide_for
from tilec.report.diff_text import diff_text
from tilec.scheduler.schedule import recounted_plan, schedule
from tilec.spec.device import DeviceSpec
from tilec.spec.resolve import resolve_device
from tilec.zoo import export

MODEL, DEVICE, ROWS, LIMIT = "nerf-mlp", "a100", 16, "time=+5%"
"""What the example of a diff is about: a network that is planned in two seconds, the rows of an edited tile."""


def diff_session() -> str:
    """`tilec diff` of a plan and of the same with a tile edited by hand, with a limit that does not hold."""
    with TemporaryDirectory() as folder:
        path = Path(folder, f"{MODEL}.onnx")
        export(MODEL, path)
        graph = import_model(path).graph
    device = resolve_device(DEVICE)
    plan = replace(schedule(graph, device, decide=decide_for(device)), name=MODEL)
    result = diff_plans(plan, _edited(plan, device))
    command = f"$ tilec diff {MODEL}.tilec edited.tilec --fail-on {LIMIT}"
    failed = "; ".join(exceeded(result, parse_limits([LIMIT])))
    return "\n".join(["```console", command, diff_text(result), f"error: {failed}", "```"])


def _edited(plan: Plan, device: DeviceSpec) -> Plan:
    """The plan with tiles of fewer rows at a core's level in its last group, its costs counted anew."""
    group = plan.groups[-1]
    variant, final = group.variants[0], group.nodes[-1]
    tiles = {**variant.tiles, device.core_level: {final.name: {final.expr.spatial[0]: ROWS}}}
    edited = replace(group, variants=(replace(variant, tiles=tiles),))
    return recounted_plan(replace(plan, groups=(*plan.groups[:-1], edited)), device)
