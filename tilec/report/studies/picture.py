"""Pictures of a study: throughput and traffic over the varied quantity (buffer, bandwidth, share of the die)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilec.analysis.studies.machine import Machine
from tilec.analysis.studies.rows import Row
from tilec.report.bounds.panels import Line, Panel

_BUFFER = "buffer (bytes)"


def study_panels(rows: Sequence[Row]) -> list[Panel]:
    """Throughput over the varied quantity, and traffic where that is the buffer; one line per combination of the
    others."""
    running = [row for row in rows if row.traffic is not None]
    across, value = _varied([row.machine for row in running])
    linear = across.startswith("share")
    drawn = [_panel("Throughput", across, "operations per second", running, value, lambda row: row.throughput, linear)]
    if across == _BUFFER:
        drawn.append(_panel("Traffic", across, "traffic (bytes)", running, value, lambda row: row.traffic, linear))
    return [panel for panel in drawn if panel.lines]


def _varied(machines: Sequence[Machine]) -> tuple[str, Callable[[Machine], float | None]]:
    """Label and value of the horizontal axis."""
    if any(machine.share is not None for machine in machines):
        return "share of the die that is buffer", lambda machine: machine.share
    bandwidths = {machine.bandwidth for machine in machines}
    if len({machine.capacity for machine in machines}) == 1 and len(bandwidths) > 1:
        return "bandwidth (bytes per second)", lambda machine: machine.bandwidth
    return _BUFFER, lambda machine: machine.capacity


def _panel(
    title: str,
    across: str,
    up: str,
    rows: Sequence[Row],
    value: Callable[[Machine], float | None],
    height: Callable[[Row], float | None],
    linear: bool,
) -> Panel:
    pairs: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        x, y = value(row.machine), height(row)
        if x and y:
            pairs.setdefault(_label(row, across), []).append((x, y))
    lines = (Line(label, tuple(sorted(points)), joined=True) for label, points in pairs.items())
    return Panel(title, across, up, tuple(lines), linear=linear)


def _label(row: Row, across: str) -> str:
    """The constants of a line."""
    machine = row.machine
    words = [row.workload, row.mapspace, machine.name]
    if machine.bandwidth is not None and not machine.level and not across.startswith("bandwidth"):
        words.append(f"{machine.bandwidth / 1e9:g} GB/s")
    return " ".join(word for word in words if word)
