"""The figures of a plan's scenarios by length, as rows and as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tilec.analysis.scenario_figures import ScenarioFigures
from tilec.ir.sizes import from_origin, sizes_text
from tilec.report.explain.layout import table
from tilec.report.formatting import bytes_text, time_text


def scenario_rows(scenarios: Iterable[ScenarioFigures]) -> list[dict[str, Any]]:
    """One row for each length of each scenario: bytes moved, the fewest possible, predicted time; null for what is not
    known."""
    return [
        {
            "scenario": each.name,
            "relations": each.relations,
            "at": sizes_text(figure.sizes),
            "length": figure.sizes[each.length] if each.length else None,
            "traffic_bytes": figure.traffic,
            "bound_bytes": figure.bound,
            "predicted_picoseconds": figure.picoseconds or None,
        }
        for each in scenarios
        for figure in each.figures
    ]


def scenario_lines(scenarios: Iterable[ScenarioFigures]) -> list[str]:
    """A table for each scenario, one line a length."""
    lines: list[str] = []
    for each in scenarios:
        lines.append(f"scenario {each.name}: {each.relations}{from_origin(each.origin)}")
        rows = [[each.length or "sizes", "bytes", "at least", "predicted"]]
        rows += [
            [
                f"{figure.sizes[each.length]:,}" if each.length else sizes_text(figure.sizes),
                bytes_text(figure.traffic),
                "-" if figure.bound is None else bytes_text(figure.bound),
                time_text(figure.picoseconds) if figure.picoseconds else "-",
            ]
            for figure in each.figures
        ]
        lines += table(rows, right=(0, 1, 2, 3))
    return lines
