"""Profile of a run as a Chrome trace: every group's time beside its roofline time on the device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

from tilec.analysis.totals import traffic_of
from tilec.artifact import Json
from tilec.bench.runners import Array, Traced
from tilec.ir.expr import constant_value
from tilec.ir.plan import Group, Plan
from tilec.report.html.limiting import PICO, least_times
from tilec.runtime.times import Span
from tilec.spec.device import DeviceSpec
from tilec.verify.remote import Remote

TRACE_FILE = "trace.json"
"""The trace beside a plan that `tilec report` shows beside predicted times."""

_NO_SIZES: Mapping[str, int] = MappingProxyType({})

RUNS = 25
"""Number of profiled runs, after as many that warm up."""


@dataclass(frozen=True, slots=True)
class Share:
    """A group's part of a run.

    `seconds` is the median of its times, `bytes` its traffic between the plan's lowest level and the next, `least` its
    roofline time in seconds: for its operations and for its bytes at every pair of levels (0: the device lacks the
    figures).
    """

    name: str
    seconds: float
    bytes: int
    operations: int
    least: float

    @property
    def roofline(self) -> float | None:
        """Roofline time over measured time."""
        return self.least / self.seconds if self.least and self.seconds else None


def traced(folder: Path, feeds: Mapping[str, Array], threads: int) -> list[tuple[Span, ...]]:
    """The spans of `RUNS` runs of the compiled model in `folder`, in a process of its own."""
    with Remote("the compiled model", Traced, folder, feeds, threads) as model:
        model.ready()
        spans: list[tuple[Span, ...]] = model.call("runs", RUNS)
        return spans


def shares(plan: Plan, runs: Sequence[Sequence[Span]], device: DeviceSpec) -> tuple[Share, ...]:
    """Every group that ran, and every call of onnxruntime (without bytes and operations), in order."""
    seconds: dict[str, list[float]] = {}
    for run in runs:
        for span in run:
            seconds.setdefault(span.name, []).append((span.end - span.begin) * 1e-9)
    groups = {group.name: group for group in plan.groups}
    return tuple(_share(name, median(times), groups.get(name), plan, device) for name, times in seconds.items())


def _share(name: str, seconds: float, group: Group | None, plan: Plan, device: DeviceSpec) -> Share:
    if group is None:
        return Share(name, seconds, 0, 0, 0.0)
    moved, operations = constant_value(traffic_of(group, plan)) or 0, constant_value(group.cost.flops) or 0
    least = max((factor.least for factor in least_times(plan, group, device)), default=0) / PICO
    return Share(name, seconds, moved, operations, least)


def events(
    process: int,
    model: str,
    runs: Sequence[Sequence[Span]],
    group_shares: Iterable[Share],
    plan: str = "",
    sizes: Mapping[str, int] = _NO_SIZES,
) -> list[Json]:
    """Trace Event Format of the run of median length: one event per group, in microseconds from its start.

    Groups that run at the same time are on separate lines. `plan` is the digest of the plan that ran, `sizes` those of
    its symbols.
    """
    run = sorted(runs, key=_length)[len(runs) // 2]
    by_name = {share.name: share for share in group_shares}
    start = run[0].begin if run else 0
    about: dict[str, Json] = {"name": model, "plan": plan}
    if sizes:
        about["sizes"] = dict(sizes)
    events_written: list[Json] = [{"args": about, "name": "process_name", "ph": "M", "pid": process, "tid": 0}]
    ends: list[int] = []
    for span in run:
        line = next((n for n, end in enumerate(ends) if end <= span.begin), len(ends))
        ends[line : line + 1] = [span.end]
        share = by_name[span.name]
        roofline = share.roofline
        events_written.append(
            {
                "args": {
                    "bytes": share.bytes,
                    "flops": share.operations,
                    "median_us": round(share.seconds * 1e6, 3),
                    "roofline": None if roofline is None else round(roofline, 4),
                },
                "cat": "group" if share.operations or share.bytes else "call",
                "dur": (span.end - span.begin) / 1e3,
                "name": span.name,
                "ph": "X",
                "pid": process,
                "tid": line,
                "ts": (span.begin - start) / 1e3,
            }
        )
    return events_written


def measured_times(trace: Any, plan: str) -> dict[str, float]:
    """Group or call -> median of its times in seconds, of the process in a trace that ran the plan with a digest; empty
    where none did."""
    listed = trace.get("traceEvents") if isinstance(trace, Mapping) else None
    written = [e for e in listed or () if isinstance(e, Mapping) and isinstance(e.get("args"), Mapping)]
    processes = {e.get("pid") for e in written if e.get("ph") == "M" and e["args"].get("plan") == plan}
    return {
        str(e.get("name")): e["args"]["median_us"] * 1e-6
        for e in written
        if e.get("ph") == "X" and e.get("pid") in processes and isinstance(e["args"].get("median_us"), int | float)
    }


def _length(run: Sequence[Span]) -> int:
    """Nanoseconds from the first beginning to the last end; 0 if all tensors are empty and nothing ran."""
    return max(span.end for span in run) - run[0].begin if run else 0


def slow(group_shares: Sequence[Share], below: float = 0.6, above: float = 0.05) -> tuple[Share, ...]:
    """Groups below `below` of their roofline that take more than `above` of the model's time, longest first."""
    total = sum(share.seconds for share in group_shares)
    slow_shares = [s for s in group_shares if (s.roofline or 1.0) < below and s.seconds > above * total]
    return tuple(sorted(slow_shares, key=lambda share: -share.seconds))
