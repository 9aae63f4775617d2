"""Statistics of a plan: fused patterns, launches, intermediate results, traffic, time (Welder, 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilec.analysis.patterns import Pattern, fused_patterns, pattern_counts
from tilec.analysis.totals import in_all_steps, launches, plan_costs, predicted, total, transactions
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, constant_value
from tilec.ir.plan import Plan
from tilec.ir.text import text_of
from tilec.ir.types import tensor_bytes


@dataclass(frozen=True, slots=True)
class LevelUse:
    """The use of a level by all groups: raw bytes read from and written to lower levels, transactions that it serves
    and their bytes, the largest footprint of a group in bytes."""

    read: Expr
    written: Expr
    transactions: Expr
    moved: Expr
    footprint: Expr


@dataclass(frozen=True, slots=True)
class Statistics:
    """A plan in numbers.

    patterns      different computations of groups of several nodes
    largest       number of nodes of the largest group
    launches      kernels started in one run, of which `kernels` are different
    intermediate  bytes passed between groups: of their outputs that are not the model's (IRS)
    traffic       bytes between the lowest level and the next; `unfused` is the same with no edge connected
    picoseconds   predicted time of a run, 0 where nothing is predicted
    """

    groups: int
    patterns: frozenset[Pattern]
    largest: int
    launches: int
    kernels: int
    intermediate: Expr
    traffic: Expr
    unfused: Expr
    picoseconds: int
    levels: Mapping[str, LevelUse]


def statistics(plan: Plan) -> Statistics:
    """The statistics of a plan; expressions where they depend on symbols."""
    costs = plan_costs(plan)
    results = {port.tensor for port in plan.outputs}
    passed_on = [name for group in plan.groups for name in group.outputs if name not in results]
    return Statistics(
        groups=len(plan.groups),
        patterns=fused_patterns(plan),
        largest=max((len(group.nodes) for group in plan.groups), default=0),
        launches=launches(plan),
        kernels=len({variant.kernel for group in plan.groups for variant in group.variants}),
        intermediate=total(tensor_bytes(plan.tensors[name].ttype, plan.tensors[name].shape) for name in passed_on),
        traffic=costs["traffic"],
        unfused=costs["unfused"],
        picoseconds=predicted(plan),
        levels=_levels(plan, costs),
    )


def statistics_to_json(numbers: Statistics) -> dict[str, Any]:
    """The statistics as plain data; text where they depend on symbols, null for a time that is not predicted."""
    counts = pattern_counts(numbers.patterns)
    return {
        "groups": numbers.groups,
        "fused_patterns": counts.patterns,
        "reducing_patterns": counts.reducing,
        "largest_group": numbers.largest,
        "launches": numbers.launches,
        "kernels": numbers.kernels,
        "intermediate_bytes": _plain(numbers.intermediate),
        "traffic_bytes": _plain(numbers.traffic),
        "unfused_traffic_bytes": _plain(numbers.unfused),
        "predicted_picoseconds": numbers.picoseconds or None,
        "levels": {
            name: {
                "read_bytes": _plain(use.read),
                "written_bytes": _plain(use.written),
                "transactions": _plain(use.transactions),
                "transacted_bytes": _plain(use.moved),
                "footprint_bytes": _plain(use.footprint),
            }
            for name, use in numbers.levels.items()
        },
    }


def _levels(plan: Plan, costs: Mapping[str, Expr]) -> dict[str, LevelUse]:
    def of(side: str, level: str) -> Expr:
        return in_all_steps(plan, lambda group: getattr(group.cost, side).get(level, Const(0)))

    used: dict[str, LevelUse] = {}
    for level in plan.levels:
        count = transactions(plan, level.name)
        used[level.name] = LevelUse(
            of("read", level.name),
            of("written", level.name),
            count,
            simplify(Binary("*", count, Const(level.transaction))),
            costs.get(f"footprint@{level.name}", Const(0)),
        )
    return used


def _plain(expr: Expr) -> int | str:
    size = constant_value(simplify(expr))
    return text_of(expr) if size is None else size
