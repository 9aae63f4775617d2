"""Results of a sweep, one row per combination: for a terminal, as CSV, as JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tilec.analysis.energy import PlanEnergy
from tilec.analysis.patterns import PatternCounts, pattern_counts
from tilec.analysis.ratios import Ratio, times_text
from tilec.analysis.statistics import Statistics, statistics_to_json
from tilec.report.formatting import bytes_text, energy_text, time_text

_ENERGY = "energy_femtojoules"
_BOUNDS = ("attainable_bytes", "least_bytes", "ratio")
_TILES = "tiles"
_OPTIONAL = (_ENERGY, *_BOUNDS, _TILES)
"""Columns printed on a terminal only where a row has a value: energies, if the device has them, bounds and tiles, if
requested."""

_NUMBERS = (
    *("groups", "fused_patterns", "reducing_patterns", "largest_group", "launches", "kernels", "intermediate_bytes"),
    *("traffic_bytes", "unfused_traffic_bytes", "transactions", "transacted_bytes", "predicted_picoseconds"),
    *_OPTIONAL,
)
"""Columns of a row's plan; transactions are those of the lowest level."""

_HEADS = {
    "groups": "groups",
    "fused_patterns": "patterns",
    "reducing_patterns": "reducing",
    "largest_group": "largest",
    "intermediate_bytes": "intermediate",
    "traffic_bytes": "traffic",
    "transacted_bytes": "transacted",
    "predicted_picoseconds": "predicted",
    _ENERGY: "energy",
    **dict(zip(_BOUNDS, ("attainable", "at least", "ratio"), strict=True)),
    _TILES: "tiles",
}
"""Map from column to its heading on a terminal."""


@dataclass(frozen=True, slots=True)
class Row:
    """One combination: `found` is its plan in numbers, or None with an `error`; `energy` where the device has figures,
    `ratio` to the best known traffic and `tiles` where requested."""

    model: str
    device: str
    fusion: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    found: Statistics | None = None
    error: str = ""
    energy: PlanEnergy | None = None
    ratio: Ratio | None = None
    tiles: str = ""


def pattern_totals(rows: Sequence[Row]) -> dict[tuple[str, str], PatternCounts]:
    """Device and way to fuse -> counts of the different patterns of all its plans, where there are several."""
    plans: dict[tuple[str, str], list[Statistics]] = {}
    for row in rows:
        if row.found is not None:
            plans.setdefault((row.device, row.fusion), []).append(row.found)
    return {
        of: pattern_counts(pattern for each in found for pattern in each.patterns)
        for of, found in plans.items()
        if len(found) > 1
    }


def pattern_lines(rows: Sequence[Row]) -> list[str]:
    """A line for each of the totals of patterns."""
    return [
        f"patterns, {device}, {fusion}: {counts.patterns} different, {counts.reducing} with two or more reductions, "
        f"the largest has {counts.largest} nodes"
        for (device, fusion), counts in pattern_totals(rows).items()
    ]


def sweep_to_json(rows: Sequence[Row]) -> dict[str, Any]:
    """The rows and the totals of patterns as plain data; numbers that depend on open sizes are text."""
    return {
        "rows": [{**_head(row), "sizes": dict(row.sizes), "plan": _plan(row)} for row in rows],
        "patterns": [
            {"device": device, "fusion": fusion, **asdict(counts)}
            for (device, fusion), counts in pattern_totals(rows).items()
        ],
    }


def sweep_csv(rows: Sequence[Row]) -> str:
    """The rows with a heading; sizes have columns of their own."""
    symbols = list(dict.fromkeys(symbol for row in rows for symbol in row.sizes))
    memory = io.StringIO()
    writer = csv.writer(memory, lineterminator="\n")
    writer.writerow(["model", *symbols, "device", "fusion", *_NUMBERS, "error"])
    for row in rows:
        numbers = _numbers(row)
        cells = ["" if numbers.get(name) is None else numbers[name] for name in _NUMBERS]
        sizes = [row.sizes.get(symbol, "") for symbol in symbols]
        writer.writerow([row.model, *sizes, row.device, row.fusion, *cells, row.error])
    return memory.getvalue()


def sweep_cells(rows: Sequence[Row]) -> list[list[str]]:
    """The rows for a terminal, headings first; bytes and times have units."""
    sized = any(row.sizes for row in rows)
    there = {name for row in rows for name, value in _numbers(row).items() if value is not None}
    heads = {name: head for name, head in _HEADS.items() if name not in _OPTIONAL or name in there}
    table = [["model", *(["sizes"] if sized else []), "device", "fusion", *heads.values()]]
    for row in rows:
        sizes = [" ".join(f"{symbol}={size}" for symbol, size in row.sizes.items())] if sized else []
        numbers = _numbers(row)
        cells = [_cell(name, numbers.get(name)) for name in heads] if numbers else ["no plan"]
        table.append([row.model, *sizes, row.device, row.fusion, *cells])
    return table


def _head(row: Row) -> dict[str, Any]:
    head = {"model": row.model, "device": row.device, "fusion": row.fusion}
    return {**head, "error": row.error} if row.error else head


def _plan(row: Row) -> dict[str, Any] | None:
    if row.found is None:
        return None
    energy = {_ENERGY: row.energy.femtojoules, "energy_leaves_out": list(row.energy.untold)} if row.energy else {}
    tiles = {_TILES: row.tiles} if row.tiles else {}
    return {**statistics_to_json(row.found), **energy, **_bounds(row.ratio), **tiles}


def _bounds(ratio: Ratio | None) -> dict[str, Any]:
    if ratio is None:
        return {}
    return dict(zip(_BOUNDS, (ratio.bound.known, ratio.bound.least, times_text(ratio)), strict=True))


def _numbers(row: Row) -> dict[str, Any]:
    """Columns of a row; empty without a plan."""
    plan = _plan(row)
    if plan is None:
        return {}
    lowest = next(iter(plan["levels"].values()))
    return {**plan, "transactions": lowest["transactions"], "transacted_bytes": lowest["transacted_bytes"]}


def _cell(name: str, value: int | str | None) -> str:
    if isinstance(value, int) and name.endswith("bytes"):
        return bytes_text(value)
    if isinstance(value, int) and name.endswith("picoseconds"):
        return time_text(value)
    if isinstance(value, int) and name == _ENERGY:
        return energy_text(value)
    return "-" if value is None else str(value)
