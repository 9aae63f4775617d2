"""Timed runners, each in a process of its own.

Inputs and outputs are allocated once; every run reads and writes the same memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tilec.runtime.times import Span

Array = NDArray[np.generic]

MOST_RUNS = 10_000
"""Limit of runs in one round."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Resources of a runtime: `seconds` to load the model, and peak memory in `bytes`, the whole process included (None
    where the system does not provide it)."""

    seconds: float
    bytes: int | None


class Runner:
    """Times `run`, a call without arguments that does one inference; loading the model took `seconds`."""

    def __init__(self, run: Callable[[], object], seconds: float = 0.0) -> None:
        self._run = run
        self._seconds = seconds

    def needs(self) -> Needs:
        """Resources used for loading the model and running it so far."""
        return Needs(self._seconds, peak_memory())

    def calibrate(self, seconds: float) -> int:
        """Warm up for about `seconds`; returns the number of runs that take that long."""
        begin = time.perf_counter()
        done = 0
        while done < MOST_RUNS and (done < 2 or time.perf_counter() - begin < seconds):
            self._run()
            done += 1
        return max(1, round(seconds * done / (time.perf_counter() - begin)))

    def round(self, runs: int) -> float:
        """Median of `runs` inferences in seconds, after a run that is not counted."""
        self._run()
        return median(self.times(runs))

    def times(self, runs: int) -> list[float]:
        """Seconds of each of `runs` inferences."""
        times = []
        for _ in range(runs):
            begin = time.perf_counter()
            self._run()
            times.append(time.perf_counter() - begin)
        return times


class Traced:
    """A compiled model that records when its groups run."""

    def __init__(self, folder: Path, feeds: Mapping[str, Array], threads: int) -> None:
        from tilec.runtime import load

        self._session = load(folder, threads=threads)
        self._feeds = feeds
        self._out = self._session.run(feeds)

    def runs(self, count: int) -> list[tuple[Span, ...]]:
        """The spans of `count` runs, after as many that warm up."""
        for _ in range(count):
            self._session.run(self._feeds, out=self._out)
        return [self._session.traced(self._feeds, out=self._out) for _ in range(count)]


def compiled(folder: Path, feeds: Mapping[str, Array], threads: int) -> Runner:
    """A runner of the compiled model in `folder`; inputs and outputs lie where it runs."""
    from tilec.runtime import load

    begin = time.perf_counter()
    session = load(folder, threads=threads)
    seconds = time.perf_counter() - begin
    out = session.to_device(session.run(feeds))
    return Runner(session.bound(session.to_device(feeds), out), seconds)


def peak_memory() -> int | None:
    """Peak memory of this process in bytes; None where the system does not provide it.

    Not `resource.getrusage`: its peak includes that of the process which started this one.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), None)
