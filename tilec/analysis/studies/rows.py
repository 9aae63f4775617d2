"""Best case of a workload on a machine: traffic, time, throughput, limit, energy (roofline with capacity)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tilec.analysis.bounds.subject import Slope, Subject
from tilec.analysis.studies.machine import Machine

MEMORY, COMPUTE = "memory", "compute"

BEST = "fastest"
WORST = "limits the device"
"""Marks: of the best of alternative machines, and of the slowest level of one device."""


@dataclass(frozen=True, slots=True)
class Row:
    """A workload under a mapspace on a machine.

    `traffic` is in bytes (None: no mapping fits below `least` bytes of buffer). `picoseconds` is the larger of the
    times to move and to compute (None: neither is limited), `throughput` is in operations per second, `femtojoules` is
    the energy where the machine has figures; `mark` distinguishes one of the compared rows.
    """

    workload: str
    mapspace: str
    machine: Machine
    traffic: int | None
    least: int
    picoseconds: int | None = None
    throughput: int | None = None
    limit: str = ""
    femtojoules: int | None = None
    mark: str = ""


def row(subject: Subject, slope: Slope, machine: Machine) -> Row:
    """The row of one workload on one machine."""
    least = slope.points[0].buffer_bytes
    point = slope.at(machine.capacity)
    if point is None:
        return Row(subject.name, slope.name, machine, None, least)
    moving = _picoseconds(point.traffic_bytes, machine.bandwidth)
    computing = _picoseconds(subject.operations, machine.rate)
    times = [(time, name) for time, name in ((moving, MEMORY), (computing, COMPUTE)) if time is not None]
    longest, limit = max(times, key=lambda each: each[0], default=(None, ""))
    return Row(
        subject.name,
        slope.name,
        machine,
        point.traffic_bytes,
        least,
        None if longest is None else round(longest),
        int(subject.operations * 10**12 / longest) if longest else None,
        limit,
        _energy(subject, point.traffic_bytes, machine),
    )


def _picoseconds(amount: int, per_second: int | None) -> Fraction | None:
    """Time for an amount at a rate; None where the rate is unlimited."""
    if per_second is None:
        return None
    return Fraction(amount * 10**12, per_second) if per_second else Fraction(10**30)


def _energy(subject: Subject, traffic: int, machine: Machine) -> int | None:
    """Femtojoules of the traffic and the multiply-adds; None where the machine lacks a figure."""
    if machine.access is None or machine.multiply_add is None:
        return None
    moved = Fraction(traffic * machine.access.energy, machine.access.bytes)
    return round(moved) + subject.operations // 2 * machine.multiply_add


def compared(rows: Sequence[Row]) -> list[Row]:
    """The rows with the fastest machine marked; of equally fast ones the smallest buffer."""
    running = [each for each in rows if each.throughput is not None]
    if len(running) < 2:
        return list(rows)
    best = max(running, key=lambda each: (each.throughput or 0, -each.machine.capacity))
    return [replace(each, mark=BEST) if each is best else each for each in rows]


def slowest(rows: Sequence[Row]) -> list[Row]:
    """The rows of a device's levels with the one marked that limits the device, if data movement does."""
    running = [each for each in rows if each.limit == MEMORY]
    if not running:
        return list(rows)
    worst = max(running, key=lambda each: (each.picoseconds or 0, -rows.index(each)))
    return [replace(each, mark=WORST) if each is worst else each for each in rows]
