"""A plan as the plain data that a page draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from tilec.analysis.ratios import plan_ratio, ratio_to_json
from tilec.analysis.statistics import statistics, statistics_to_json
from tilec.artifact import encode
from tilec.ir.plan import Plan, PlanLevel
from tilec.ir.program_text import program_text
from tilec.report.html.groups import group_data
from tilec.report.html.layout import layered
from tilec.report.html.memory_map import memory_map, place_maps
from tilec.report.html.programs import programs
from tilec.report.html.refusals import codes, refusals
from tilec.report.html.shown import Shown
from tilec.report.html.sizes import sizes_data, variants_data
from tilec.report.html.slopes import slopes
from tilec.report.html.speeds import roofs, units
from tilec.report.html.values import tensor_facts
from tilec.report.html.verdict import verdict
from tilec.report.html.wiring import Wiring, wiring


def plan_data(shown: Shown) -> dict[str, Any]:
    """All data of a plan on a page: bytes, operations and picoseconds as in the plan, positions in pixels."""
    plan = shown.plan
    plan_slopes, by_group = slopes(plan)
    groups = [
        {
            **group_data(plan, group, by_group.get(group.name), shown.device),
            "measured": _measured(shown, group.name),
            **variants_data(shown, group),
        }
        for group in plan.groups
    ]
    wires, lowered = wiring(plan), programs(shown.all_variants)
    read = [name for group in groups for name in (*group["reads"], *group["outputs"])]
    return {
        "codes": codes(plan),
        "device": _device(shown),
        "digests": dict(shown.digests),
        "drawing": _drawing(wires),
        "edited": shown.edited,
        "groups": groups,
        "label": shown.label,
        "levels": [_level(plan, level) for level in plan.levels],
        "memory": memory_map(plan),
        "name": plan.name,
        "placement": encode(plan.placement),
        "places": {kernel: place_maps(program) for kernel, program in lowered.items()},
        "ports": _ports(plan),
        "programs": {kernel: program_text(program) for kernel, program in lowered.items()},
        "refusals": refusals(plan),
        "scenarios": [encode(each) for each in shown.scenarios],
        "sizes": sizes_data(shown),
        "slopes": [{"known": slope.known, "proved": slope.proved} for slope in plan_slopes],
        "symbols": list(shown.all_variants.symbols),
        "tensors": _tensors(plan, [*read, *(name for link in wires.links for name in link.tensors)]),
        "totals": _totals(plan, groups),
        "verdict": verdict(shown),
    }


def _measured(shown: Shown, group: str) -> int | None:
    """Measured picoseconds of a group."""
    seconds = shown.measured.get(group)
    return None if seconds is None else round(seconds * 1e12)


def _totals(plan: Plan, groups: list[dict[str, Any]]) -> dict[str, Any]:
    ratio = plan_ratio(plan)
    kinds = Counter(group["kind"] for group in groups)
    return {
        **statistics_to_json(statistics(plan)),
        "kinds": {kind: kinds[kind] for kind in ("stitched", "register", "single")},
        "nodes": sum(len(group.nodes) for group in plan.groups),
        "prepared": len(plan.prepared),
        "ratio": ratio_to_json(ratio) if ratio is not None else None,
    }


def _device(shown: Shown) -> dict[str, Any]:
    """The device; speeds only where its file is available."""
    plan, device = shown.plan, shown.device
    if device is None:
        return {"description": "", "known": False, "name": plan.device, "roofs": [], "units": []}
    rates = [
        {"accumulator": unit.accumulator, "inputs": list(unit.inputs), "name": unit.name, "rate": unit.rate}
        for unit in units(plan, device)
    ]
    passed = [encode(roof) for roof in roofs(plan, device)]
    return {"description": device.description, "known": True, "name": device.name, "roofs": passed, "units": rates}


def _level(plan: Plan, level: PlanLevel) -> dict[str, Any]:
    """A level; `bounded` is the capacity for which bounds hold: that of one instance and all levels above it."""
    return {
        "alignment": level.alignment,
        "bounded": plan.capacities.get(level.name),
        "capacity": level.capacity,
        "managed": level.managed,
        "name": level.name,
        "pool": encode(level.pool) if level.pool is not None else None,
        "scope": level.scope,
        "transaction": level.transaction,
        "units": level.units,
    }


def _ports(plan: Plan) -> dict[str, Any]:
    """Inputs and outputs by name, type and bytes, and the parts that onnxruntime runs."""
    sides = {
        side: [[port.name, *tensor_facts(plan, port.tensor)] for port in ports]
        for side, ports in (("inputs", plan.inputs), ("outputs", plan.outputs))
    }
    return {**sides, "calls": [call.file for call in plan.calls]}


def _tensors(plan: Plan, names: Iterable[str]) -> dict[str, Any]:
    return {name: tensor_facts(plan, name) for name in sorted(set(names))}


def _drawing(wires: Wiring) -> dict[str, Any]:
    """Items with their positions, and links; a trunk of an item is its positions in the rows below."""
    sources = frozenset(n for n, item in enumerate(wires.items) if item.kind == "input")
    drawn = layered(len(wires.items), [(link.source, link.target) for link in wires.links], sources)
    places = zip(wires.items, drawn.x, drawn.rows, strict=True)
    return {
        "items": [[item.kind, item.index, x, row] for item, x, row in places],
        "links": [[link.source, link.target, list(link.tensors)] for link in wires.links],
        "trunks": {str(item): list(places) for item, places in drawn.trunks.items()},
        "width": drawn.width,
    }
