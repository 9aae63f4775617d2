"""Measures plans on this machine: built side by side in processes of their own, timed one after another (W20, W40)."""

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
"""Processes that build; each holds a compiler in memory."""

CLOSE = 1.05
"""Plans within this factor of the fastest, and the first of all, are timed a second time."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What measuring a plan may take: `workers` that build (None: one a usable CPU), `seconds` of warming up and again
    of timing, the longest that `building` and `running` one may take before it counts as failed."""

    workers: int | None = None
    seconds: float = 0.05
    building: float = 60.0
    running: float = 60.0


@contextmanager
def measuring(device: DeviceSpec, options: CodegenOptions, effort: Effort | None = None) -> Iterator[Bench]:
    """Where plans for `device`, which this machine runs the code of, are measured; no process is left afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="tilec-"))
    bench = Bench(device, options, effort or Effort(), folder)
    try:
        yield bench
    finally:
        try:
            _end(bench, folder)
        except BaseException:  # Ctrl-C comes when it likes
            _end(bench, folder)
            raise


def _end(bench: Bench, folder: Path) -> None:
    bench.close()
    shutil.rmtree(folder, ignore_errors=True)


class Bench:
    """Measures when it is called with plans; processes start when they are first needed and stay for the next ones."""

    builder: Callable[..., Builder] = Builder
    timer: Callable[[], Timer] = Timer

    def __init__(self, device: DeviceSpec, options: CodegenOptions, effort: Effort, folder: Path) -> None:
        self._made = (device, options, folder / "objects")
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
        self._start(min(self._workers, len(plans)))
        folder = self._folder / str(self._contests)
        folder.mkdir()
        seconds = self._timed(plans, self._built(plans, folder))
        shutil.rmtree(folder, ignore_errors=True)
        return [seconds.get(number) for number in range(len(plans))]

    def close(self) -> None:
        """End all processes."""
        for remote in (*self._builders, *([self._timer] if self._timer else [])):
            remote.kill()
        self._builders, self._timer = [], None

    def _start(self, builders: int) -> None:
        """Have so many builders, and what times: those that are missing start at once."""
        new = []
        while len(self._builders) < builders:
            new.append(Remote("building", self.builder, *self._made))
            self._builders.append(new[-1])
        if self._timer is None:
            self._timer = Remote("timing", self.timer)
            new.append(self._timer)
        for remote in new:
            remote.ready()

    def _built(self, plans: Sequence[Plan], folder: Path) -> dict[int, Path]:
        """Plan's number -> where it was built, of those that could be."""
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
        """Why a builder failed; one that died or hangs is replaced later."""
        try:
            answer: str | None = remote.answer(timeout=0)
        except RemoteError as error:
            remote.kill()
            self._builders.remove(remote)
            return error.message
        return answer

    def _timed(self, plans: Sequence[Plan], folders: Mapping[int, Path]) -> dict[int, float]:
        """Plan's number -> seconds, of those that run. Times drift: those that are close are timed again, and so is the
        first, which they have to beat."""
        seconds: dict[int, float] = {}
        with precedence():
            for number in folders:
                best = min(seconds.values(), default=inf)
                found = self._time(plans[number], folders[number], best)
                if found is not None:
                    seconds[number] = found
            best = min(seconds.values(), default=inf)
            again = [number for number, each in seconds.items() if each <= best * CLOSE or number == 0]
            for number in again if len(again) > 1 else ():
                found = self._time(plans[number], folders[number], inf)
                seconds[number] = min(seconds[number], found if found is not None else inf)
        return seconds

    def _time(self, plan: Plan, folder: Path, best: float) -> float | None:
        limit = self._effort.running
        try:
            self._start(0)
            assert self._timer is not None
            found: float = self._timer.call(
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
        return found
