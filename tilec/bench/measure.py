"""Measurement of candidate plans on this machine (Welder, 3.2 and 4): built in parallel, timed one after another."""

from __future__ import annotations

import logging
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from multiprocessing.connection import wait
from pathlib import Path

from tilec.bench.candidate import Builder, Timer
from tilec.bench.priority import precedence
from tilec.errors import TilecError, UnavailableError
from tilec.ir.plan import Plan
from tilec.spec.cpus import usable_cpus
from tilec.spec.device import DeviceSpec
from tilec.spec.recipe import CodegenOptions
from tilec.verify.remote import Remote, RemoteError

log = logging.getLogger("tilec")

MOST_WORKERS = 10
"""Limit of building processes; each holds a compiler in memory."""

CLOSE = 1.05
"""Plans within this factor of the fastest, and the first of all, are timed a second time."""


BuildAll = Callable[[Sequence[Plan], Path], dict[int, Path]]
"""Builds plans into numbered folders of a folder; returns those of the plans that were built."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Limits of measuring a plan.

    `workers` processes build (None: one per usable CPU). Warming up and timing take `seconds` each. A plan fails if
    `building` or `running` takes longer than these seconds.
    """

    workers: int | None = None
    seconds: float = 0.05
    building: float = 60.0
    running: float = 60.0


@contextmanager
def measuring(
    device: DeviceSpec, options: CodegenOptions, effort: Effort | None = None, build: BuildAll | None = None
) -> Iterator[Bench]:
    """A Bench for `device`, whose code this machine can run; all its processes have ended at the end of the block.
    Plans are built by `build` where it is given, else by processes here."""
    folder = Path(tempfile.mkdtemp(prefix="tilec-"))
    bench = Bench(device, options, effort or Effort(), folder, build)
    try:
        yield bench
    finally:
        try:
            _end(bench, folder)
        except BaseException:  # Ctrl-C may interrupt the clean-up
            _end(bench, folder)
            raise


def _end(bench: Bench, folder: Path) -> None:
    bench.close()
    shutil.rmtree(folder, ignore_errors=True)


class Bench:
    """Measures plans when called; processes start on demand and are reused."""

    builder: Callable[..., Builder] = Builder
    timer: Callable[[], Timer] = Timer

    def __init__(
        self,
        device: DeviceSpec,
        options: CodegenOptions,
        effort: Effort,
        folder: Path,
        build: BuildAll | None = None,
    ) -> None:
        self._build = build or self._built
        self._builder_arguments = (device, options, folder / "objects")
        self._effort = effort
        self._folder = folder
        self._workers = effort.workers or min(MOST_WORKERS, len(usable_cpus()))
        self._builders: list[Remote] = []
        self._timer: Remote | None = None
        self._contests = 0

    def __call__(self, plans: Sequence[Plan]) -> list[float | None]:
        """Seconds of one run of each plan; None for one that cannot be built or run.

        Raises UnavailableError where nothing can be built.
        """
        if not plans:
            return []
        self._contests += 1
        folder = self._folder / str(self._contests)
        folder.mkdir()
        seconds = self._timed(plans, self._build(plans, folder))
        shutil.rmtree(folder, ignore_errors=True)
        return [seconds.get(number) for number in range(len(plans))]

    def close(self) -> None:
        """End all processes."""
        for remote in (*self._builders, *([self._timer] if self._timer else [])):
            remote.kill()
        self._builders, self._timer = [], None

    def _start(self, builders: int) -> None:
        """Start the missing processes: `builders` builders, and the timer."""
        new = []
        while len(self._builders) < builders:
            new.append(Remote("building", self.builder, *self._builder_arguments))
            self._builders.append(new[-1])
        if self._timer is None:
            self._timer = Remote("timing", self.timer)
            new.append(self._timer)
        for remote in new:
            remote.ready()

    def _built(self, plans: Sequence[Plan], folder: Path) -> dict[int, Path]:
        """Map from a plan's number to the folder it was built in, without those that failed."""
        waiting = deque(enumerate(plans))
        busy: dict[Remote, tuple[int, float]] = {}
        failures: dict[int, str] = {}
        while waiting or busy:
            self._start(min(self._workers, len(waiting) + len(busy)))
            idle = [remote for remote in self._builders if remote not in busy]
            while waiting and idle:
                number, plan = waiting.popleft()
                remote = idle.pop()
                (folder / str(number)).mkdir()
                remote.ask("build", plan, folder / str(number), self._effort.building)
                busy[remote] = number, time.monotonic() + self._effort.building
            soonest = min(deadline for _, deadline in busy.values())
            wait([remote.connection for remote in busy], max(0.0, soonest - time.monotonic()))
            for remote, (number, deadline) in list(busy.items()):
                late = time.monotonic() >= deadline
                if late or remote.connection.poll():
                    del busy[remote]
                    failure = self._answer(remote)
                    if failure is not None:
                        failures[number] = failure
        for number, failure in sorted(failures.items()):
            log.info("candidate %d of %s cannot be built: %s", number, plans[number].name, failure)
        return {number: folder / str(number) for number in range(len(plans)) if number not in failures}

    def _answer(self, remote: Remote) -> str | None:
        """The error message of a builder, None on success; a builder that died or hangs is removed, to be replaced
        later."""
        try:
            answer: str | None = remote.answer(timeout=0)
        except RemoteError as error:
            remote.kill()
            self._builders.remove(remote)
            return error.message
        return answer

    def _timed(self, plans: Sequence[Plan], folders: Mapping[int, Path]) -> dict[int, float]:
        """Map from a plan's number to its seconds, without those that cannot run.

        Times drift, so that plans close to the fastest are timed again, and so is the first, which they must beat.
        """
        seconds: dict[int, float] = {}
        with precedence():
            for number in folders:
                best = min(seconds.values(), default=inf)
                time = self._time(plans[number], folders[number], best)
                if time is not None:
                    seconds[number] = time
            best = min(seconds.values(), default=inf)
            again = [number for number, each in seconds.items() if each <= best * CLOSE or number == 0]
            for number in again if len(again) > 1 else ():
                time = self._time(plans[number], folders[number], inf)
                seconds[number] = min(seconds[number], time if time is not None else inf)
        return seconds

    def _time(self, plan: Plan, folder: Path, best: float) -> float | None:
        limit = self._effort.running
        try:
            self._start(0)
            assert self._timer is not None
            seconds: float = self._timer.call(
                "time", plan, folder, self._contests, self._effort.seconds, best, limit, timeout=limit
            )
        except UnavailableError:
            raise
        except TilecError as error:
            log.info("a candidate of %s cannot be timed: %s", plan.name, error.message)
            if self._timer is not None:
                self._timer.kill()
            self._timer = None
            return None
        return seconds
