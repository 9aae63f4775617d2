"""Workers that may crash or hang: a process each, replaced when it does, and from time to time anyway."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from tests.conformance.cases import Case
from tests.conformance.judge import Result, ended, judged

LIFETIME = 300
"""Cases that a worker runs; loaded libraries stay in its memory."""

WHOLE_MODEL = 5
"""How many times as long as others a case of a whole network may take."""

_FORK = multiprocessing.get_context("fork")

Judge = Callable[[Case], Result]


def run_all(cases: Sequence[Case], backend: str, jobs: int, timeout: float) -> Iterator[Result]:
    """The results of all cases in the order in which they end; a case has `timeout` seconds, a network more."""
    yield from run_with(cases, lambda case: judged(case, backend), jobs, timeout)


def run_with(cases: Sequence[Case], judge: Judge, jobs: int, timeout: float) -> Iterator[Result]:
    """The same with any judge."""
    pending = list(cases)[::-1]
    workers: list[_Worker] = []
    try:
        while pending or workers:
            while pending and len(workers) < jobs:
                workers.append(_Worker.start(judge, timeout))
                workers[-1].give(pending.pop())
            first = min(worker.end for worker in workers)
            wait([worker.pipe for worker in workers], max(0.0, first - time.monotonic()))
            for worker in list(workers):
                result = worker.result()
                if result is None:
                    continue
                yield result
                if pending and worker.fit:
                    worker.give(pending.pop())
                else:
                    worker.stop()
                    workers.remove(worker)
    finally:
        for worker in workers:
            worker.stop()


@dataclass
class _Worker:
    """A process, the case that it has and since when, and how many it has had."""

    process: Any
    pipe: Connection
    timeout: float
    case: Case | None = None
    begun: float = 0.0
    done: int = 0
    fit: bool = True

    @classmethod
    def start(cls, judge: Judge, timeout: float) -> _Worker:
        here, there = _FORK.Pipe()
        process = _FORK.Process(target=_serve, args=(there, judge), daemon=True)
        process.start()
        there.close()
        return cls(process, here, timeout)

    def give(self, case: Case) -> None:
        self.case, self.begun = case, time.monotonic()
        self.pipe.send(case.name)

    @property
    def allowed(self) -> float:
        """Seconds that the case may take."""
        assert self.case is not None
        return self.timeout * (WHOLE_MODEL if self.case.family == "light" else 1)

    @property
    def end(self) -> float:
        """When the case has had its time."""
        return self.begun + self.allowed

    def result(self) -> Result | None:
        """How the case ended, or None while it runs."""
        assert self.case is not None
        seconds = time.monotonic() - self.begun
        if self.pipe.poll():
            try:
                result: Result = self.pipe.recv()
            except EOFError:
                self.fit = False
                self.process.join()
                return ended(self.case, "crashed", reason=_death(self.process.exitcode), seconds=seconds)
            self.done += 1
            self.fit = self.done < LIFETIME
            return result
        if seconds < self.allowed:
            return None
        self.fit = False
        return ended(self.case, "timeout", reason=f"no result in {self.allowed:g} s", seconds=seconds)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _death(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _serve(pipe: Connection, judge: Judge) -> None:
    """A worker's life: names of cases in, results out; what libraries print is dropped."""
    from tests.conformance.cases import collect

    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    os.dup2(sys.stdout.fileno(), 1)
    os.dup2(sys.stdout.fileno(), 2)
    cases = {case.name: case for case in collect()}
    while True:
        try:
            name = pipe.recv()
        except EOFError:
            return
        pipe.send(judge(cases[name]))
