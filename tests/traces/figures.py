"""The figures of a trace: whole seconds, ratios against the faster peer, what a new size costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import geometric_mean, median

from tests.traces.runtimes import OURS
from tests.traces.turns import Call, Measured


@dataclass(frozen=True, slots=True)
class RuntimeFigures:
    """One runtime: seconds of all calls, their median, the median of what a call takes longer at a new size than the
    same call again, seconds to load, peak memory in bytes, the largest error."""

    seconds: float
    p50: float
    new_size: float
    loading: float
    memory: int | None
    error: float


@dataclass(frozen=True, slots=True)
class Figures:
    """A trace: each runtime, and the faster peer's time over that of tilec, above 1 where tilec is faster.

    `mean` is the geometric mean over the calls, `sums` the ratio of whole traces, `again` the geometric mean over the
    same calls once more, when no size is new. Each is against the peer that is faster by it.
    """

    runtimes: Mapping[str, RuntimeFigures]
    mean: float
    sums: float
    again: float


def figures(found: Measured) -> Figures:
    """The figures of a trace."""
    runtimes = {name: _of_runtime(name, found) for name in found.needs}
    peers = [name for name in runtimes if name != OURS]
    first = {name: [call.seconds[name] for call in found.calls] for name in runtimes}
    again = {name: [call.again[name] for call in found.calls] for name in runtimes}
    return Figures(
        runtimes,
        min(mean_ratio(first[peer], first[OURS]) for peer in peers),
        min(sum(first[peer]) / sum(first[OURS]) for peer in peers),
        min(mean_ratio(again[peer], again[OURS]) for peer in peers),
    )


def mean_ratio(theirs: Iterable[float], ours: Iterable[float]) -> float:
    """The geometric mean of the ratios of two runtimes' times."""
    return geometric_mean(their / our for their, our in zip(theirs, ours, strict=True))


def _of_runtime(name: str, found: Measured) -> RuntimeFigures:
    seconds = [call.seconds[name] for call in found.calls]
    new = [call.seconds[name] - call.again[name] for call in found.calls if call.new]
    error = max((call.error.get(name, 0.0) for call in found.calls), default=0.0)
    needs = found.needs[name]
    return RuntimeFigures(sum(seconds), median(seconds), median(new) if new else 0.0, needs.seconds, needs.bytes, error)


def distinct(calls: Iterable[Call]) -> int:
    """The number of different sizes."""
    return len({tuple(call.sizes.items()) for call in calls})
