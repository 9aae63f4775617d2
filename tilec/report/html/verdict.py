"""The result of verification as plain data: verdict, outputs with tolerance and errors, counted traffic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from tilec.report.html.shown import Shown

_KEPT = (
    "accuracy",
    "because",
    "below_known",
    "diverging",
    "groups",
    "implementation",
    "per_group",
    "programs",
    "random",
    "reference",
    "reference_because",
    "verdict",
    "verified_on",
)
_RECORDED = ("latency_sizes", "latency_us", "machine", "threads", "versions")


def verdict(shown: Shown) -> dict[str, Any]:
    """The verification of a plan; `state` is none, stale, or done."""
    if shown.report is None:
        return {"state": "stale" if shown.stale else "none"}
    report = shown.report
    draws = [draw for draw in _listed(shown.run.get("draws")) if isinstance(draw, Mapping)]
    outputs = [
        {
            "name": name,
            "tolerance": _number(_of(part, "tolerance")),
            "errors": [_error(draw, name) for draw in draws],
        }
        for name, part in sorted(_table(report.get("outputs")).items())
    ]
    return {
        "state": "done",
        **{key: report[key] for key in _KEPT if key in report},
        "counted": _counted(_table(report.get("traffic"))),
        "draws": [_draw(draw) for draw in draws],
        "outputs": outputs,
        **_variants(report),
        "run": {key: shown.run[key] for key in _RECORDED if key in shown.run},
    }


def _draw(draw: Mapping[str, Any]) -> dict[str, Any]:
    """A set of inputs; of a model with symbols with its sizes."""
    sizes = {"sizes": dict(_table(draw.get("sizes")))} if "sizes" in draw else {}
    return {"mean": _number(draw.get("mean")), "seed": draw.get("seed"), **sizes}


def _variants(report: Mapping[str, Any]) -> dict[str, Any]:
    """How many of the variants of a model with symbols ran at samples, and those that did not."""
    if "variants" not in report:
        return {}
    rows = [(group, each) for group, of in _table(report["variants"]).items() for each in _listed(of)]
    idle = [[group, _of(each, "guard")] for group, each in rows if not _of(each, "samples")]
    return {"variants": {"idle": idle, "total": len(rows)}, "samples": len(list(_listed(report.get("samples"))))}


def _counted(traffic: Mapping[str, Any]) -> dict[str, Any] | None:
    """The number of groups whose bytes a run counted, and those whose count differs from the plan."""
    if not traffic:
        return None
    differ = [name for name, each in sorted(traffic.items()) if _of(each, "counted") != _of(each, "planned")]
    return {"differ": differ, "groups": len(traffic)}


def _error(draw: Mapping[str, Any], output: str) -> Any:
    return _number(_table(draw.get("errors")).get(output))


def _number(value: Any) -> Any:
    """A number that JSON can represent, or text; infinite errors are recorded as text."""
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value


def _listed(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else ()


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _of(value: Any, key: str) -> Any:
    return _table(value).get(key)
