"""Plots of bounds as numbers: ski slope, OI mesa, performance mesa, area mountain (Orojenesis, derived models)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tilec.analysis.bounds.subject import LB, Subject
from tilec.analysis.bounds.units import peak
from tilec.bounds.levels import level_capacities
from tilec.spec.device import DeviceSpec

_PER_DOUBLING = 4
"""Number of capacities per doubling at which the provable bound is drawn."""


@dataclass(frozen=True)
class Line:
    """A curve. Its value lasts until the next point, unless points are `joined`; a `proved` bound is attained by no
    known mapping."""

    label: str
    pairs: tuple[tuple[float, float], ...]
    proved: bool = False
    joined: bool = False


@dataclass(frozen=True)
class Panel:
    """One picture with logarithmic axes unless `linear`; `marks` are capacities in bytes with their names, `points` are
    single points."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    marks: tuple[tuple[int, str], ...] = ()
    points: tuple[tuple[float, float], ...] = ()
    linear: bool = False


def panels(subjects: Sequence[Subject], device: DeviceSpec | None) -> list[Panel]:
    """The pictures of the subjects; the performance mesa only for a device, at its lowest level's bandwidth."""
    levels = level_capacities(device) if device else ()
    marks = tuple((level.capacity, level.level) for level in levels)
    end = max([size for size, _ in marks] + [subject.largest_useful_buffer for subject in subjects])
    curves = [curve for subject in subjects for curve in _curves(subject, end, len(subjects) > 1)]

    def panel(title: str, y: str, value: Callable[[Subject, int], float]) -> Panel:
        lines = (
            Line(
                curve.label,
                tuple((size, value(curve.subject, moved)) for size, moved in curve.pairs),
                curve.proved,
                curve.proved,
            )
            for curve in curves
        )
        real = tuple((each.capacity, value(s, each.traffic)) for s in subjects for each in s.measured if each.traffic)
        return Panel(title, "buffer (bytes)", y, tuple(lines), marks, real)

    drawn = [
        panel("Ski slope", "traffic (bytes)", lambda _, moved: moved),
        panel("OI mesa", "operations per byte", intensity),
    ]
    if device is not None and levels and (bandwidth := levels[0].bandwidth) is not None:

        def attained(subject: Subject, moved: int) -> float:
            return min(peak(device, subject), intensity(subject, moved) * bandwidth)

        title = f"Performance mesa: {device.name}, {levels[0].below} {bandwidth / 1e9:.0f} GB/s"
        drawn.append(panel(title, "operations per second", attained))
    return [*drawn, *(_mountain(subject) for subject in subjects if subject.mountains)]


def _mountain(subject: Subject) -> Panel:
    """Throughput over the share of a die that is buffer (Orojenesis, buffer and compute area).

    It rises while memory limits it, then falls.
    """
    lines = (
        Line(name, tuple((design.share, design.throughput) for design in designs), joined=True)
        for name, designs in subject.mountains.items()
    )
    return Panel("Area mountain", "share of the die that is buffer", "operations per second", tuple(lines), linear=True)


def intensity(subject: Subject, traffic: int) -> float:
    """Operational intensity: operations per byte of traffic."""
    return subject.operations / traffic


@dataclass(frozen=True)
class _Curve:
    """Pairs of (buffer, traffic) in bytes; points without traffic are left out."""

    label: str
    subject: Subject
    pairs: tuple[tuple[int, int], ...]
    proved: bool = False


def _curves(subject: Subject, end: int, several: bool) -> Iterator[_Curve]:
    """The slopes of a subject and its provable bound up to a buffer of `end` bytes."""
    label = f"{subject.name} " if several else ""
    for slope in subject.slopes:
        moved = [(p.buffer_bytes, p.traffic_bytes) for p in slope.points if p.traffic_bytes]
        yield _Curve(f"{label}{slope.name}", subject, (*moved, *((end, traffic) for _, traffic in moved[-1:])))
    low = max(1, min(slope.points[0].buffer_bytes for slope in subject.slopes))
    doublings = (end // low).bit_length() + 1
    sizes = sorted({min(end, round(low * 2 ** (step / _PER_DOUBLING))) for step in range(_PER_DOUBLING * doublings)})
    proved = [(size, subject.lower(size).traffic_bytes) for size in sizes]
    yield _Curve(f"{label}{LB}", subject, tuple(pair for pair in proved if pair[1]), proved=True)
