"""What sessions do beside serving, off the way to their first results: it begins when a first run has returned.

One thread of the process does it. What a program that ends leaves undone, a process of its own does.
"""

import atexit
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from tilec.api.after_fork import renew
from tilec.api.held_files import HeldFile
from tilec.api.request import Request
from tilec.artifact import encode
from tilec.own_process import modules_path

PATIENCE = 0.5
"""Seconds that an errand waits for a first run: a program may open a session long before it calls it."""

_LONGEST = 100_000
"""Bytes of an argument that every system takes."""


class Gate:
    """Opens when a session has had its first run."""

    def __init__(self) -> None:
        self.is_open = False
        self._ready = time.monotonic() + PATIENCE

    def open(self) -> None:
        """Let the errands behind it begin."""
        self.is_open = True
        self._ready = 0.0
        _errands.look()

    @property
    def seconds(self) -> float:
        """Until it opens by itself; 0 or less where it is open."""
        return self._ready - time.monotonic()


@dataclass(frozen=True, eq=False)
class Errand:
    """Work that raises nothing, behind a gate. A process of its own has the `left` request's model, whose files are
    `held`, compiled where the work is not done before the program ends."""

    gate: Gate
    work: Callable[[], None]
    left: Request | None
    held: tuple[HeldFile, ...]


class _Errands:
    """The errands of this process."""

    def __init__(self) -> None:
        self.after_fork()
        renew(self)

    def after_fork(self) -> None:
        """The process that was copied does its own."""
        self._changed = threading.Condition()
        self._undone: list[Errand] = []
        self._at_work = False

    def add(self, errand: Errand) -> None:
        """Do an errand once its gate is open."""
        with self._changed:
            self._undone.append(errand)
            self._changed.notify()
            if not self._at_work:
                self._at_work = True
                threading.Thread(target=self._work, name="tilec-errands", daemon=True).start()

    def look(self) -> None:
        """A gate has opened."""
        with self._changed:
            self._changed.notify()

    def left(self) -> list[tuple[Request, tuple[HeldFile, ...]]]:
        """What others are to do, if this process ends now."""
        with self._changed:
            return [(errand.left, errand.held) for errand in self._undone if errand.left is not None]

    def _work(self) -> None:
        while (errand := self._next()) is not None:
            errand.work()
            with self._changed:
                self._undone.remove(errand)

    def _next(self) -> Errand | None:
        """The errand whose gate opens first, once it is open; None where there is none."""
        with self._changed:
            while self._undone:
                first = min(self._undone, key=lambda errand: errand.gate.seconds)
                if first.gate.seconds <= 0:
                    return first
                self._changed.wait(first.gate.seconds)
            self._at_work = False
            return None


_errands = _Errands()


def run_later(
    gate: Gate, work: Callable[[], None], left: Request | None = None, held: tuple[HeldFile, ...] = ()
) -> None:
    """Do some work, which raises nothing, once a gate is open, see Errand."""
    _errands.add(Errand(gate, work, left, held))


def _leave() -> None:
    """Have a process of its own do what this one, which ends, has not done."""
    left = _errands.left()
    if not left or not sys.executable or not hasattr(os, "posix_spawn"):
        return
    given = json.dumps([[encode(replace(request, detached=False)), encode(held)] for request, held in left])
    if len(given) > _LONGEST:  # the next program asks again
        return
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    command = [sys.executable, "-P", "-m", "tilec.api.left_undone", given]
    with suppress(OSError, NotImplementedError):
        for _, held in left:
            for file in held:
                os.set_inheritable(file.descriptor, True)
        variables = {**os.environ, "PYTHONPATH": modules_path()}
        os.posix_spawn(sys.executable, command, variables, file_actions=nothing, setsid=True)


atexit.register(_leave)
