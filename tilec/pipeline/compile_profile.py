"""What a compilation spent its seconds on: a listener that clocks every stage and every step (`--profile-compile`).

A step's time is what passed since the call of `advance` before it. Time of other processes is inside of it as far as it
was waited for.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilec.pipeline.job import Listener
    from tilec.progress import Advance

OTHER = "other"
"""The step of time of which a stage says nothing."""


@dataclass(frozen=True, slots=True)
class Span:
    """Uninterrupted time of a stage at one step, in seconds from the begin of the compilation, and the seconds that
    this process, all of its threads, computed."""

    stage: str
    step: str
    begin: float
    end: float
    cpu: float


@dataclass(frozen=True)
class ProfiledListener:
    """Hands everything on to a listener, and keeps the spans of stages and steps, in order."""

    listener: "Listener"
    spans: list[Span] = field(default_factory=list)
    begin: float = field(default_factory=time.perf_counter)

    @contextmanager
    def stage(self, name: str) -> "Iterator[Advance]":
        """Clock the steps of a stage."""
        with self.listener.stage(name) as shown:
            last = self._now()

            def advance(done: int, total: int, step: str = "") -> None:
                nonlocal last
                last = self._spent(name, step or OTHER, last)
                shown(done, total, step)

            try:
                yield advance
            finally:
                self._spent(name, OTHER, last)

    def skipped(self, stage: str) -> None:
        """Hand it on."""
        self.listener.skipped(stage)

    def step(self, text: str) -> None:
        """Hand it on."""
        self.listener.step(text)

    def note(self, text: str) -> None:
        """Hand it on."""
        self.listener.note(text)

    def _now(self) -> tuple[float, float]:
        return time.perf_counter() - self.begin, time.process_time()

    def _spent(self, stage: str, step: str, since: tuple[float, float]) -> tuple[float, float]:
        """Keep the time that passed, as part of the last span where that is of the same step."""
        now = self._now()
        begin, cpu = since
        if self.spans and (self.spans[-1].stage, self.spans[-1].step, self.spans[-1].end) == (stage, step, begin):
            before = self.spans.pop()
            begin, cpu = before.begin, cpu - before.cpu
        self.spans.append(Span(stage, step, begin, now[0], now[1] - cpu))
        return now


def profile_to_json(spans: Sequence[Span]) -> dict[str, Any]:
    """Seconds by stage and step, and the spans in the trace event format, which Perfetto and chrome://tracing open."""
    stages = list(dict.fromkeys(span.stage for span in spans))
    return {
        "stages": {stage: _steps(spans, stage) for stage in stages},
        "traceEvents": [_event(each) for stage in stages for each in (_whole(spans, stage), *_of(spans, stage))],
        "displayTimeUnit": "ms",
    }


def _of(spans: Sequence[Span], stage: str) -> list[Span]:
    return [span for span in spans if span.stage == stage]


def _whole(spans: Sequence[Span], stage: str) -> Span:
    """A stage as one span, in which those of its steps lie."""
    there = _of(spans, stage)
    return Span(stage, stage, there[0].begin, there[-1].end, sum(span.cpu for span in there))


def _event(span: Span) -> dict[str, Any]:
    begin, end = round(span.begin * 1e6), round(span.end * 1e6)
    args = {"cpu_seconds": round(span.cpu, 6)}
    event = {"name": span.step, "cat": span.stage, "ph": "X", "ts": begin, "dur": end - begin}
    return event | {"pid": 0, "tid": 0, "args": args}


def _steps(spans: Sequence[Span], stage: str) -> dict[str, Any]:
    """Seconds, and seconds that this process computed, of a stage and its steps."""
    there = _of(spans, stage)
    steps = dict.fromkeys(span.step for span in there)
    return _seconds(there) | {
        "steps": {step: _seconds([span for span in there if span.step == step]) for step in steps}
    }


def _seconds(spans: Sequence[Span]) -> dict[str, Any]:
    return {
        "seconds": round(sum(span.end - span.begin for span in spans), 6),
        "cpu_seconds": round(sum(span.cpu for span in spans), 6),
    }
