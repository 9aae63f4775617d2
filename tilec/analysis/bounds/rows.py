"""Bounds at capacities, one row for each subject, capacity and mapspace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilec.analysis.bounds.subject import LB, Attained, Subject
from tilec.bounds.einsum.mapspaces import PARALLEL
from tilec.bounds.levels import LevelCapacity
from tilec.spec.units import BYTES

MEASURED = "measured"

_STEPS = 10
"""Number of capacities listed for one subject when none is requested."""

_OF_MANY = (1 << 16, 1 << 20, 1 << 24)
"""Capacities in bytes listed for each of many subjects when none is requested."""


@dataclass(frozen=True)
class At:
    """A capacity in bytes, as it was written, of each of `units`; the device level it belongs to, if any."""

    capacity: int
    text: str
    level: LevelCapacity | None = None
    units: int = 1


@dataclass(frozen=True)
class Row:
    """A bound: `traffic` in bytes (None: the mapspace has no mapping that fits), with the mapping that attains it, or
    the reason why it holds."""

    subject: Subject
    at: At
    mapspace: str
    traffic: int | None
    point: Attained | None = None
    because: str = ""

    @property
    def gap(self) -> float | None:
        """Gap 0: traffic over compulsory traffic (Orojenesis, motivation); None where nothing has to move."""
        if self.traffic is None or not self.subject.compulsory:
            return None
        return self.traffic / self.subject.compulsory


def at_capacity(text: str, units: int = 1) -> At:
    """A capacity in its written form: `40MiB`, `40MB`, of each of `units`. Raises ValueError for any other form."""
    return At(BYTES.parse(text), text.strip(), units=units)


def at_bytes(size: int) -> At:
    """A capacity in bytes, written in the unit that needs fewest digits."""
    whole = (f"{size // factor}{suffix}" for suffix, factor in BYTES.factors.items() if size % factor == 0)
    return At(size, min(whole, key=len))


def at_levels(levels: Sequence[LevelCapacity]) -> list[At]:
    """The capacities of a device's levels."""
    return [At(level.capacity, f"{level.below} -> {level.level}", level, level.units) for level in levels]


def usual_capacities(subject: Subject) -> list[At]:
    """Powers of four bytes up to the largest useful buffer, and that size itself."""
    last = subject.largest_useful_buffer
    powers = [4**power for power in range(1, 40) if 4**power < last][-_STEPS:]
    return [at_bytes(size) for size in (*powers, last)]


def some_capacities() -> list[At]:
    """64 KiB, 1 MiB and 16 MiB."""
    return [at_bytes(size) for size in _OF_MANY]


def rows_of(subject: Subject, ats: Sequence[At]) -> Iterator[Row]:
    """The curves of a subject, its bound in tasks for several units, and its provable bound at every capacity."""
    for at in ats:
        for slope in subject.slopes:
            point = slope.at(at.capacity)
            if point is None:
                least = slope.points[0].buffer_bytes
                yield Row(subject, at, slope.name, None, because=f"nothing fits, {least} bytes are the least")
            else:
                yield Row(subject, at, slope.name, point.traffic_bytes, point)
        if at.units > 1 and subject.parallel is not None:
            yield _parallel(subject, at, subject.parallel(at.capacity, at.units))
        lower = subject.lower(at.capacity)
        yield Row(subject, at, LB, lower.traffic_bytes, because=lower.because)
        for real in subject.measured:
            if real.capacity == at.capacity:
                yield Row(subject, at, MEASURED, real.traffic, because=real.name)


def _parallel(subject: Subject, at: At, found: Attained | str) -> Row:
    if isinstance(found, str):
        return Row(subject, at, PARALLEL, None, because=found)
    return Row(subject, at, PARALLEL, found.traffic_bytes, found)
