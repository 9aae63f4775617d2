"""The process behind a queue: runs its orders one after the other, and ends when there are none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

from tilec.background.failure import BEGUN, Failure
from tilec.background.order import Order
from tilec.background.priority import bound_memory, cpu_seconds, give_way, ordinary
from tilec.background.queue import Queue
from tilec.background.status import Status, tell

LINGER = 2.0
"""Seconds that the process waits for another order: programs open several models one after the other."""

PAUSE, WATCH = 0.05, 0.2
"""Seconds between two looks at an empty queue, and at a command that runs."""

STARVED, SHARE = 60.0, 0.05
"""Seconds after which a command that had a smaller share of a CPU is idle no longer."""

_SIGNALS = {-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP}
"""Ends of a command that somebody else brought about."""


class Compiler:
    """The compiler of a queue. It ends at SIGTERM, when it is asked to stop, and when its queue is gone."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._ended = threading.Event()
        self._limit: int | None = None

    def serve(self) -> None:
        """Run all orders. Raises OSError where the queue cannot be written."""
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        give_way()
        self._limit = bound_memory()
        while not self._ended.is_set():
            with self._queue.held() as held:
                if not held:
                    return
                self._queue.resume()
                self._serve()
            if self._queue.is_stopped or not self._queue.waiting():  # what came before the lock was free
                return

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self._ended.set()

    @property
    def _stopped(self) -> bool:
        return self._ended.is_set() or self._queue.is_stopped

    def _serve(self) -> None:
        last = time.monotonic()
        while not self._stopped:
            order = next(iter(self._queue.waiting()), None)
            if order is not None:
                self._run(order)
                last = time.monotonic()
            elif time.monotonic() - last > LINGER:
                return
            else:
                self._ended.wait(PAUSE)

    def _run(self, order: Order) -> None:
        """Run one order."""
        if order.begun >= BEGUN:
            self._fail(order, "CompilerError", f"the compiler was ended {order.begun} times before it was done")
            return
        try:
            order = self._queue.begun(order, order.begun + 1)
        except FileNotFoundError:  # somebody else has seen its result
            return
        tell(self._queue.status_file, Status(order.what, time.time()))
        try:
            ended = self._outcome(order)
        except OSError as error:  # its program is gone
            self._fail(order, "TilecError", f"the compiler cannot be started: {error.strerror or error}")
            return
        finally:
            self._queue.done()
        if ended is None:
            with suppress(OSError):
                self._queue.begun(order, order.begun - 1)
        elif ended.returncode == 0 or (order.result and Path(order.result).exists()):
            self._queue.forget(order.key)
            self._queue.remove(order)
        else:
            self._failed(order, ended)

    def _outcome(self, order: Order) -> subprocess.CompletedProcess[str] | None:
        """How the command of an order ended; None where it was to end before. Raises OSError."""
        if order.cpus and hasattr(os, "sched_setaffinity"):
            with suppress(OSError):
                os.sched_setaffinity(0, order.cpus)
        child = subprocess.Popen(
            [*order.command, str(os.getpid()), str(self._queue.status_file)],
            env=order.variables(os.environ),
            cwd=order.folder if os.path.isdir(order.folder) else os.sep,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0,
        )
        began, had, given = time.monotonic(), 0.0, order.given
        while True:
            try:
                out, err = child.communicate(given, timeout=WATCH)
                return subprocess.CompletedProcess(order.command, child.returncode, out, err)
            except subprocess.TimeoutExpired:
                given = ""
            if self._stopped:
                _end(child)
                return None
            if time.monotonic() - began > STARVED:
                seconds = cpu_seconds(child.pid)
                if seconds is not None and seconds - had < SHARE * STARVED:
                    ordinary(child.pid)
                began, had = time.monotonic(), seconds or 0.0

    def _failed(self, order: Order, ended: subprocess.CompletedProcess[str]) -> None:
        """Remember how a command failed, unless what it was about is gone."""
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(ended.stdout)
            if said["kind"] == "UsageError":
                self._queue.remove(order)
                return
            self._fail(order, said["kind"], said["message"], said["place"], said["hint"])
            return
        last = ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else f"exit code {ended.returncode}"
        kind = "TilecError" if ended.returncode in _SIGNALS else "CompilerError"
        if ended.returncode < 0:
            last = f"it was ended by signal {signal.Signals(-ended.returncode).name}"
        if self._limit is not None and ("MemoryError" in ended.stderr or "bad_alloc" in ended.stderr):
            last = f"it needs more than the {self._limit >> 20} MiB that it may take in the background"
        self._fail(order, kind, f"the compiler failed: {last}", order.what)

    def _fail(self, order: Order, kind: str, message: str, place: str | None = None, hint: str | None = None) -> None:
        before = self._queue.failure(order.key)
        count = before.count + 1 if before is not None else 1
        self._queue.fail(order, Failure(order.what, kind, message, place, hint, time.time(), count))


def _end(child: subprocess.Popen[str]) -> None:
    """End a command, gently: it removes what it was writing."""
    child.terminate()
    with suppress(subprocess.TimeoutExpired):
        child.wait(10)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
