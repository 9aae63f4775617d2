"""A diff as one JSON object, for programs."""

from __future__ import annotations

from typing import Any

import tilec.ir.codec as _expressions  # noqa: F401  teaches `encode` the form of expressions
from tilec.analysis.change import BoundMetric, Metric, PlanDiff
from tilec.analysis.ratios import ratio_to_json
from tilec.artifact import encode
from tilec.report.formatting import word_of


def diff_to_json(diff: PlanDiff) -> dict[str, Any]:
    """A diff as plain data: costs as integers or expressions in the symbols, null where a side has none."""
    return {
        "changed": not diff.empty,
        "what": diff.what,
        "old": encode(diff.old),
        "new": encode(diff.new),
        "unchanged": diff.unchanged,
        "totals": {metric.name: _metric(metric) for metric in diff.totals},
        "bounds": {metric.level: _bound(metric) for metric in diff.bounds},
        "groups": [
            {
                "kinds": list(group.kinds),
                "before": list(group.before),
                "after": list(group.after),
                "operators": group.operators,
                "changes": [{**encode(change), "kind": word_of(change)} for change in group.changes],
                "costs": {metric.name: _metric(metric) for metric in group.costs},
                "bounds": {metric.level: _bound(metric) for metric in group.bounds},
            }
            for group in diff.groups
        ],
        "changes": [encode(change) for change in diff.changes],
    }


def _metric(metric: Metric) -> dict[str, Any]:
    return {"before": encode(metric.before), "after": encode(metric.after)}


def _bound(metric: BoundMetric) -> dict[str, Any]:
    sides = {"before": metric.before, "after": metric.after}
    return {side: ratio_to_json(ratio) if ratio is not None else None for side, ratio in sides.items()}
