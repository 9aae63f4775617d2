"""A runtime in a process of its own, asked by size: it draws its inputs, times its calls, and stores its results."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import numpy as np

from tests.traces.feeds import Array, Interface
from tests.traces.runtimes import Load
from tests.traces.trace import Sizes, Trace
from tilec.bench.runners import Needs, peak_memory


class Timed:
    """One runtime with one model."""

    def __init__(self, load: Load, place: Path, trace: Trace, interface: Interface, threads: int) -> None:
        begin = time.perf_counter()
        self._runtime = load(place, trace, interface, threads)
        self._loading = time.perf_counter() - begin
        self._interface = interface
        self._least = interface.feeds(trace.least)

    def call(self, sizes: Sizes) -> tuple[float, float]:
        """Seconds of an inference at these sizes, and of the same once more. One at the least sizes goes before them:
        what a machine takes to wake up, after other runtimes had their turns, is no cost of a size."""
        feeds = self._interface.feeds(sizes)
        self._runtime.run(self._least)
        return self._seconds(feeds), self._seconds(feeds)

    def store(self, folder: Path) -> None:
        """Write the results of the last inference into `folder`, one file an output; nothing is copied on the way."""
        folder.mkdir(parents=True)
        for place, name in enumerate(self._interface.outputs):
            np.save(folder / f"{place}.npy", self._runtime.results()[name])

    def needs(self) -> Needs:
        """Seconds to load the model, and the memory of this process at its peak."""
        return Needs(self._loading, peak_memory())

    def processor_seconds(self, sizes: Sizes, runs: int) -> float:
        """The median processor time of `runs` inferences at these sizes, after one that is not counted."""
        feeds = self._interface.feeds(sizes)
        self._runtime.run(feeds)
        found = []
        for _ in range(runs):
            begin = time.process_time()
            self._runtime.run(feeds)
            found.append(time.process_time() - begin)
        return median(found)

    def _seconds(self, feeds: dict[str, Array]) -> float:
        begin = time.perf_counter()
        self._runtime.run(feeds)
        return time.perf_counter() - begin
