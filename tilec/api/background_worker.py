"""A compilation in the background: a request on standard input, an error as JSON on standard output.

Arguments: the number of the process that this one ends with, and the file for its status.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tilec import own_process
from tilec.api.any_size import Attempt
from tilec.api.cache import Cache, file_state
from tilec.api.model_source import present
from tilec.api.request import Request, keyed
from tilec.api.worker import Log, build, refit, terminate, told_errors
from tilec.artifact import SETTLED, decode
from tilec.background import Status, tell
from tilec.calls_ahead import end_with
from tilec.errors import TilecError, UnsupportedError
from tilec.spec.cpus import without_children

if TYPE_CHECKING:
    from tilec.progress import Advance

PAUSE = 0.2
"""Seconds between two statuses of a stage."""


class StatusLog(Log):
    """Keeps the file of a status up to date."""

    def __init__(self, place: Path, status: Status) -> None:
        self._place = place
        self._status = status
        self._next = 0.0

    @contextmanager
    def stage(self, name: str) -> "Iterator[Advance]":
        """A stage runs."""
        with super().stage(name):
            self._status = replace(self._status, stage=name, step="", done=0, total=0)
            tell(self._place, self._status)
            yield self._advance

    def _advance(self, done: int, total: int, step: str = "") -> None:
        now = time.monotonic()
        if now >= self._next or step != self._status.step:
            self._next = now + PAUSE
            self._status = replace(self._status, step=step, done=done, total=total)
            tell(self._place, self._status)


def main() -> None:
    """Compile on one processor, unless another model's code serves; exit as the worker of a session does."""
    parent, place = int(sys.argv[1]), Path(sys.argv[2])
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGTERM, terminate)
    end_with(parent)
    own_process.begin()
    request = decode(Request, json.loads(sys.stdin.read()))
    log = StatusLog(place, Status(Path(request.model).name, time.time()))
    try:
        with told_errors(), without_children():
            request = request if request.key else keyed(request)
            try:
                _remember_files(request)
                request = present(request)
                if not refit(request):
                    build(request, log)
            except UnsupportedError as error:
                Attempt(request).remember(error)  # the next program needs no attempt to know that
                raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)  # Python that ends has no handler any more


def _remember_files(request: Request) -> None:
    """Let the next program know which model it is without reading its files, before there is code for it: when this one
    was asked for, they may have been too new for that, and may be yet."""
    cache, model = Cache(Path(request.cache)), Path(request.model)
    files = [model, *(model.parent / name for name in request.weights)]
    with suppress(TilecError):  # they are gone
        newest = max(max(file_state(path).times) for path in files) / 1e9
        time.sleep(min(SETTLED, max(0.0, newest + SETTLED - time.time())) + 0.01)
        for path in files:
            cache.digest(path)


if __name__ == "__main__":
    main()
