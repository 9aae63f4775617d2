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
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

log = logging.getLogger("tilec")

T = TypeVar("T")
R = TypeVar("R")

SECONDS = 1.0
"""Interval at which a child checks that its parent is alive."""


class _LostError(Exception):
    """The process that was to compute a call is gone."""


class CallsAhead:
    """Calls of modules' functions on up to `count` processes, in the order in which they begin; none are forked before
    the first.  The first call is computed before the process that computes it forks the others: what it imports, they
    need not. At the end of the block the processes are killed."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._begun: dict[str, tuple[Callable[[Any], Any], Any, Future[Any]]] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._first: BaseProcess | None = None
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        self._lost = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._first is not None and self._first.pid is not None:
            try:
                os.killpg(self._first.pid, signal.SIGKILL)
            except OSError:  # it is gone, or is no leader of its group yet
                self._first.kill()
            self._first.join(SECONDS)
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def begin(self, key: str, function: Callable[[T], Any], argument: T) -> None:
        """Let a process compute a call, unless one under the key has an equal argument."""
        if self._lost or self._is_begun(key, function, argument):
            return
        try:
            self._begun[key] = function, argument, self._started().submit(self._computed, function, argument)
        except (OSError, RuntimeError) as error:  # no process can be forked, or no thread started
            log.info("no process computes ahead: %s", error)
            self._lost = True

    def result(self, key: str, function: Callable[[T], R], argument: T) -> R:
        """What a function returns for the argument, or raises: of the call that began under the key if it is the same,
        of one that begins now otherwise; computed here where no process does."""
        self.begin(key, function, argument)
        if self._is_begun(key, function, argument):
            future: Future[R] = self._begun[key][2]
            try:
                return future.result()
            except _LostError as error:
                log.info("computed again: %s", error)
        return function(argument)

    def _is_begun(self, key: str, function: Callable[[T], Any], argument: T) -> bool:
        return key in self._begun and self._begun[key][:2] == (function, argument)

    def _computed(self, function: Callable[[T], R], argument: T) -> R:
        """What a process returns for a call, or raises."""
        if self._lost:
            raise _LostError("a process was lost before")
        connection = self._idle.get()
        try:
            connection.send((function, argument))
            value, error = connection.recv()
        except (OSError, EOFError) as gone:
            self._lost = True
            raise _LostError(str(gone) or "a process was lost") from gone
        finally:
            self._idle.put(connection)
        if error is not None:
            raise error
        result: R = value
        return result

    def _started(self) -> ThreadPoolExecutor:
        if self._threads is None:
            pairs = [multiprocessing.Pipe() for _ in range(self._count)]
            theirs = [their for _, their in pairs]
            process = multiprocessing.get_context("fork").Process(
                target=_serve_all, args=(theirs, [our for our, _ in pairs], os.getpid()), daemon=True
            )
            process.start()
            self._first = process
            for our, their in pairs:
                their.close()
                self._idle.put(our)
            self._threads = ThreadPoolExecutor(self._count, "tilec-ahead")
        return self._threads


def _serve_all(connections: Sequence[Connection], others: Sequence[Connection], parent: int) -> None:
    """Compute the first call, then fork a process for every further connection, and go on."""
    os.setpgrp()
    for other in others:
        other.close()
    _begin_child(parent)
    first, *rest = connections
    if not _answer(first):
        return
    for number, connection in enumerate(rest):
        own = os.getpid()
        try:
            child = os.fork()
        except OSError:  # the ends that are closed below say so: what they are sent is computed elsewhere
            break
        if child == 0:
            for other in (first, *rest[:number], *rest[number + 1 :]):
                other.close()
            _begin_child(own)
            _serve(connection)
            os._exit(0)
    for connection in rest:
        connection.close()
    _serve(first)


def _serve(connection: Connection) -> None:
    """Compute calls until there is nobody to ask for more."""
    while _answer(connection):
        pass


def _answer(connection: Connection) -> bool:
    """Compute one call; returns whether there was one."""
    try:
        function, argument = connection.recv()
    except (OSError, EOFError):
        return False
    answer: tuple[Any, Exception | None]
    try:
        answer = function(argument), None
    except Exception as error:
        answer = None, error
    try:
        connection.send(answer)
    except Exception:  # nobody is there, or it cannot be sent: it is computed elsewhere
        return False
    return True


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
