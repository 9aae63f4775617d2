"""A group as plain data: nodes, decisions, and per level traffic, footprint and bound."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilec.analysis.fusion_kind import kind_of
from tilec.analysis.ratios import attained
from tilec.analysis.totals import traffic_of
from tilec.artifact import encode
from tilec.bounds.plan.bound_violations import moved_by
from tilec.bounds.plan.groups import read_from_outside
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const
from tilec.ir.plan import Group, Plan
from tilec.report.html.limiting import least_times, limiting_factor
from tilec.report.html.parts import parts
from tilec.report.html.values import plain
from tilec.spec.device import DeviceSpec


def group_data(plan: Plan, group: Group, slope: int | None, device: DeviceSpec | None = None) -> dict[str, Any]:
    """All data of a group; `slope` is the number of its ski slope. Bytes, operations and picoseconds are integers, or
    text where they depend on symbols. Without a `device` no factor limits it."""
    factors = () if device is None else least_times(plan, group, device)
    limit = limiting_factor(group, factors)
    return {
        "connect": dict(group.connect),
        "factors": [encode(factor) for factor in factors],
        "kernels": [variant.kernel for variant in group.variants],
        "kind": kind_of(group),
        "levels": {level.name: _level(group, level.name) for level in plan.levels if _used(group, level.name)},
        "limit": encode(limit) if limit is not None else None,
        "name": group.name,
        "nodes": [encode(node) for node in group.nodes],
        "operations": plain(group.cost.flops),
        "operators": operators(node.op for node in group.nodes),
        "outputs": list(group.outputs),
        "parts": parts(plan, group),
        "reads": list(read_from_outside(group)),
        "slope": slope,
        "time": group.cost.picoseconds,
        "traffic": plain(traffic_of(group, plan)),
        "variants": [encode(variant) for variant in group.variants],
    }


def operators(names: Iterable[str]) -> str:
    """The operators of a group in a few words: `Conv, BatchNormalization x 2, Clip`."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name or "?"] = counts.get(name or "?", 0) + 1
    return ", ".join(name if count == 1 else f"{name} × {count}" for name, count in counts.items())


def _used(group: Group, level: str) -> bool:
    cost = group.cost
    return any(level in table for table in (cost.read, cost.written, cost.footprint, cost.transactions))


def _level(group: Group, level: str) -> dict[str, Any]:
    """A group's data at a level: bytes between it and the lower ones, transactions that it serves, footprint in
    bytes."""
    cost, zero = group.cost, Const(0)
    read, written = cost.read.get(level, zero), cost.written.get(level, zero)
    data: dict[str, Any] = {
        "footprint": plain(cost.footprint.get(level, zero)),
        "moved": plain(simplify(Binary("+", read, written))),
        "read": plain(read),
        "transactions": plain(cost.transactions.get(level, zero)),
        "written": plain(written),
    }
    if level in group.bounds:
        bound = attained(group.bounds[level], moved_by(group, level))
        data |= {"known": bound.known, "least": bound.least, "parallel": bound.parallel}
    return data
