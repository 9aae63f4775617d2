"""Rows of a study for a terminal, as CSV and as plain data for JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from tilec.analysis.bounds.rows import at_bytes
from tilec.analysis.studies.rows import Row
from tilec.report.bounds.table import size_text
from tilec.report.formatting import NOTHING, energy_text, time_text

_COLUMNS = (
    *("workload", "mapspace", "machine", "level", "share", "capacity_bytes", "bandwidth_bytes_per_second"),
    *("operations_per_second", "traffic_bytes", "picoseconds", "throughput", "limit", "energy_femtojoules", "mark"),
)

_HEADS = {
    "capacity_bytes": "buffer",
    "bandwidth_bytes_per_second": "bandwidth",
    "operations_per_second": "peak",
    "traffic_bytes": "traffic",
    "picoseconds": "time",
    "energy_femtojoules": "energy",
    "share": "of die",
    "mark": "",
}

NAMES = ("workload", "mapspace", "machine", "level", "limit", "")
"""Headings of columns that contain words."""

_SHORT = 6
"""Letters up to which a capacity is printed as it was written: 40MiB, 370MB."""

_PREFIXES = (("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3))


def study_to_json(convention: str, meanings: Mapping[str, str], rows: Sequence[Row]) -> dict[str, Any]:
    """The rows as plain data; empty values are left out."""
    entries = [{key: value for key, value in _values(row).items() if value not in (None, "")} for row in rows]
    return {"convention": convention, "mapspaces": dict(meanings), "rows": entries}


def study_csv(rows: Sequence[Row]) -> str:
    """The rows with a heading."""
    memory = io.StringIO()
    writer = csv.writer(memory, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(["" if value is None else value for value in _values(row).values()] for row in rows)
    return memory.getvalue()


def study_cells(rows: Sequence[Row]) -> list[list[str]]:
    """The rows with units, headings first; empty columns are left out."""
    values = [_values(row) for row in rows]
    shown = [name for name in _COLUMNS if any(value[name] not in (None, "") for value in values)]
    return [
        [_HEADS.get(name, name) for name in shown],
        *([_cell(name, each[name]) for name in shown] for each in values),
    ]


def _values(row: Row) -> dict[str, Any]:
    machine = row.machine
    mark = f"nothing fits, {row.least} bytes are the least" if row.traffic is None else row.mark
    share = None if machine.share is None else round(machine.share, 6)
    values = (
        *(row.workload, row.mapspace, machine.name, machine.level, share, machine.capacity, machine.bandwidth),
        *(machine.rate, row.traffic, row.picoseconds, row.throughput, row.limit, row.femtojoules, mark),
    )
    return dict(zip(_COLUMNS, values, strict=True))


def _cell(name: str, value: Any) -> str:
    if value is None:
        return NOTHING
    match name:
        case "capacity_bytes":
            exact = at_bytes(value).text
            return exact if len(exact) <= _SHORT else size_text(value)
        case "traffic_bytes":
            return size_text(value)
        case "bandwidth_bytes_per_second":
            return f"{_short(value)}B/s"
        case "operations_per_second" | "throughput":
            return f"{_short(value)}op/s"
        case "picoseconds":
            return time_text(value)
        case "energy_femtojoules":
            return energy_text(value)
        case "share":
            return f"{100 * value:.1f} %"
    return str(value)


def _short(number: int) -> str:
    prefix, power = next(((prefix, power) for prefix, power in _PREFIXES if number >= 10**power), ("", 0))
    return f"{number / 10**power:.4g} {prefix}"
