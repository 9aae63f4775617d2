"""A subject of bounds (an Einsum, a chain, a whole graph) with its curves and its provable lower bound."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from tilec.bounds.einsum.lower import LowerBound, compulsory, lb
from tilec.bounds.einsum.task_limit import most_tasks

if TYPE_CHECKING:
    from tilec.bounds.area import Design
    from tilec.bounds.einsum.curve import Curve
    from tilec.bounds.einsum.einsum import Einsum
    from tilec.bounds.graph.parallel_curves import FindParallel

LB = "lb"
LB_MEANING = (
    "no mapping of any kind moves less: compulsory traffic, for matrix products 2*M*N*K/sqrt(S) - 2*S words of S that"
    " fit if that is more"
)


@dataclass(frozen=True, slots=True)
class Attained:
    """A point of a curve: the smallest traffic of a mapspace within `buffer_bytes`, in bytes and, where counted, in
    words, and the `mapping` that attains it; its text is for people."""

    buffer_bytes: int
    traffic_bytes: int
    accesses: int | None
    mapping: object


@dataclass(frozen=True)
class Slope:
    """The ski slope of a mapspace: points by rising buffer and falling traffic (Orojenesis, methodology); `meaning`
    describes the mapspace."""

    name: str
    meaning: str
    points: Sequence[Attained]

    def at(self, capacity: int) -> Attained | None:
        """The best point within `capacity` bytes; None when nothing fits."""
        fitting = bisect_right(self.points, capacity, key=lambda point: point.buffer_bytes)
        return self.points[fitting - 1] if fitting else None

    @classmethod
    def of(cls, name: str, curve: Curve) -> Slope:
        """The slope of a curve of one Einsum."""
        points = (Attained(p.buffer_bytes, p.traffic_bytes, p.accesses, p.mapping) for p in curve.points)
        return cls(name, curve.mapspace, tuple(points))

    @property
    def largest_useful_buffer(self) -> int:
        """Bytes of the largest effectual buffer: a larger one saves no traffic (Gap 1)."""
        return self.points[-1].buffer_bytes


@dataclass(frozen=True)
class Measured:
    """Measured traffic in bytes at a capacity in bytes."""

    name: str
    capacity: int
    traffic: int


@dataclass(frozen=True)
class Subject:
    """A computation with bounds.

    `text` describes the computation, `sizes` and `bits` its extents and element widths, `count` its number of
    occurrences. `compulsory` is the compulsory traffic in bytes; `operations` count a multiply-add as two. `slopes` are
    ordered by rising freedom of their mapspaces; `lower` is the provable bound at a capacity in bytes. `parallel` is
    the best mapping in tasks for so many units with a capacity each, or the reason why there is none. `width` is the
    width of the widest multiplied element in bits. `notes` are lines for people, `mountains` the designs of a die by
    slope.
    """

    name: str
    text: str
    sizes: Mapping[str, int]
    bits: Mapping[str, int]
    compulsory: int
    operations: int
    slopes: tuple[Slope, ...]
    lower: Callable[[int], LowerBound]
    width: int
    count: int = 1
    notes: tuple[str, ...] = ()
    measured: tuple[Measured, ...] = ()
    mountains: Mapping[str, Sequence[Design]] = field(default_factory=dict)
    parallel: Callable[[int, int], Attained | str] | None = None

    @property
    def largest_useful_buffer(self) -> int:
        """Bytes above which no curve falls any more."""
        return max(slope.largest_useful_buffer for slope in self.slopes)


def of_einsum(
    einsum: Einsum, slopes: Sequence[Slope], name: str = "", count: int = 1, find: FindParallel | None = None
) -> Subject:
    """The subject of one Einsum with its curves; `find` gives those in tasks."""
    bits = {operand.tensor: operand.bits for operand in einsum.operands}
    return Subject(
        name=name or einsum.output.tensor,
        text=einsum.text,
        sizes=dict(einsum.extents),
        bits=bits,
        compulsory=compulsory(einsum),
        operations=2 * prod(einsum.extents.values()),
        slopes=tuple(slopes),
        lower=lambda capacity: lb(einsum, capacity),
        width=max((operand.bits for operand in einsum.inputs), default=0),
        count=count,
        parallel=None if find is None else lambda capacity, units: _in_tasks(einsum, find, capacity, units),
    )


def _in_tasks(einsum: Einsum, find: FindParallel, capacity: int, units: int) -> Attained | str:
    most = most_tasks(einsum)
    if most < units:
        return f"{most} elements of the output and parts of the reduction are fewer than {units} units"
    point = find(einsum, units, capacity, frozenset()).at(capacity)
    if point is None:
        return f"nothing fits in {units} tasks"
    return Attained(point.buffer_bytes, point.traffic_bytes, point.accesses, point.mapping)
