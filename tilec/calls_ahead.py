"""Calls that child processes compute ahead of when their results are needed, because Python computes on one processor
per process.

Processes are forked: what they share with this one is not sent to them. They end with it, and what they compute is the
same as here, so that losing one costs time only.
"""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

log = logging.getLogger("tilec")

T = TypeVar("T")
R = TypeVar("R")

SECONDS = 1.0
"""Interval at which a child checks that its parent is alive, and the longest wait for the end of a thread."""


class CallsAhead:
    """Calls of modules' functions on up to `count` processes, in the order in which they begin; none are forked before
    the first. At the end of the block the processes are killed."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._begun: dict[str, tuple[Callable[[Any], Any], Any, Future[Any]]] = {}
        self._pool: ProcessPoolExecutor | None = None
        self._processes: list[BaseProcess] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.kill()
        for thread in self._threads:  # else it may close pipes while the interpreter ends and writes to them
            thread.join(SECONDS)

    def begin(self, key: str, function: Callable[[T], Any], argument: T) -> None:
        """Let a process compute a call, unless one under the key has an equal argument."""
        if self._is_begun(key, function, argument):
            return
        try:
            self._begun[key] = function, argument, self._started().submit(function, argument)
        except (OSError, BrokenProcessPool) as error:  # no process can be forked, or one was lost
            log.info("no process computes ahead: %s", error)

    def result(self, key: str, function: Callable[[T], R], argument: T) -> R:
        """What a function returns for the argument, or raises: of the call that began under the key if it is the same,
        of one that begins now otherwise; computed here where no process does."""
        self.begin(key, function, argument)
        if self._is_begun(key, function, argument):
            future: Future[R] = self._begun[key][2]
            try:
                return future.result()
            except BrokenProcessPool as error:
                log.info("computed again: %s", error)
        return function(argument)

    def _is_begun(self, key: str, function: Callable[[T], Any], argument: T) -> bool:
        return key in self._begun and self._begun[key][:2] == (function, argument)

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            before, threads = multiprocessing.active_children(), threading.enumerate()
            context = multiprocessing.get_context("fork")
            self._pool = ProcessPoolExecutor(self._count, context, _begin_child, (os.getpid(),))
            self._pool.submit(os.getpid)  # all processes are forked now
            self._processes = [each for each in multiprocessing.active_children() if each not in before]
            self._threads = [each for each in threading.enumerate() if each not in threads]
        return self._pool


def _begin_child(parent: int) -> None:
    """A child neither answers Ctrl-C nor outlives its parent, and leaves the parent's garbage alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with(parent)
    gc.freeze()


def end_with(parent: int) -> None:
    """Let this process end soon after its parent has."""

    def look(_number: int, _frame: FrameType | None) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, SECONDS, SECONDS)
