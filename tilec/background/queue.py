"""The queue of a cache: orders that wait for its compiler, and those that failed, as files.

queue/USER-MACHINE/   of one user on one machine: others may have other files under the same names
    lock              held by the compiler while it lives
    stop              asks it to end
    status.json       how far the command is that it runs
    compiler.log      what it says of itself
    RANK-KEY.json     an order that waits, or is at work
    failed-KEY.json   one that failed

A file appears complete. A machine that stops may lose the last ones: damaged files count as none. Versions of tilec
share the lock; orders that one does not understand it leaves alone.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from tilec.artifact import decode, digest_bytes, encode, is_locked, locked_within, put_text
from tilec.background.failure import Failure
from tilec.background.order import Order
from tilec.background.status import Status, told
from tilec.errors import ArtifactError

T = TypeVar("T")

FOLDER = "queue"

_PATIENCE = 0.5
"""Seconds in which a new compiler waits for the lock: whoever looks whether there is one holds it for a moment."""


@dataclass(frozen=True)
class Queue:
    """The queue of the cache with a root, for this user on this machine."""

    root: Path

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        user = os.getuid() if hasattr(os, "getuid") else 0
        return self.root / FOLDER / f"{user}-{digest_bytes(platform.node().encode())[:12]}"

    @property
    def log(self) -> Path:
        """The file of what the compiler says of itself."""
        return self.folder / "compiler.log"

    @property
    def status_file(self) -> Path:
        """The file of how far the running command is."""
        return self.folder / "status.json"

    def add(self, order: Order) -> None:
        """Put an order into the queue, unless it is there. Raises OSError where that cannot be."""
        self._prepare()
        if not self.has(order):
            _put(self.folder / order.name, order)

    def has(self, order: Order) -> bool:
        """Whether an order waits or is at work."""
        return (self.folder / order.name).is_file()

    def remove(self, order: Order) -> None:
        """Take an order out of the queue."""
        with suppress(OSError):
            (self.folder / order.name).unlink()

    def waiting(self) -> list[Order]:
        """The orders in the queue, in the order in which they are run; those whose result is there are removed: a
        compiler that was killed had no time to."""
        found = []
        for path in self._files("[0-9]*-*.json"):
            order = _read(Order, path)
            if order is None and _is_whole(path):  # of another version of tilec, whose compiler comes after this one
                continue
            if order is None or order.name != path.name or (order.result and Path(order.result).exists()):
                with suppress(OSError):
                    path.unlink()
                continue
            with suppress(OSError):
                found.append((order.rank, path.stat().st_mtime_ns, order.name, order))
        return [order for *_, order in sorted(found, key=lambda each: each[:3])]

    def begun(self, order: Order, times: int) -> Order:
        """The order that has begun so many times, kept as such at its place in the queue. Raises OSError."""
        path, anew = self.folder / order.name, replace(order, begun=times)
        state = path.stat()
        _put(path, anew)
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        return anew

    def failure(self, key: str) -> Failure | None:
        """How the order with a key failed, if it did."""
        return _read(Failure, self._failed(key))

    def failures(self) -> list[Failure]:
        """All of them."""
        read = (_read(Failure, path) for path in self._files("failed-*.json"))
        return [failure for failure in read if failure is not None]

    def fail(self, order: Order, failure: Failure) -> None:
        """Take an order out of the queue that failed, and remember that; a full disk forgets it."""
        with suppress(OSError):
            _put(self._failed(order.key), failure)
        self.remove(order)

    def forget(self, key: str) -> None:
        """Let an order be tried again."""
        with suppress(OSError):
            self._failed(key).unlink()

    def status(self) -> Status | None:
        """How far the running command is; None where none runs."""
        return told(self.status_file) if self.lives else None

    def done(self) -> None:
        """No command runs any more."""
        with suppress(OSError):
            self.status_file.unlink()

    @property
    def lives(self) -> bool:
        """Whether there is a compiler."""
        try:
            return is_locked(self._lock)
        except OSError:
            return False

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Be the compiler of this queue; yields False where another one is. Raises OSError."""
        self._prepare()
        with locked_within(self._lock, _PATIENCE) as held:
            yield held

    @property
    def is_stopped(self) -> bool:
        """Whether the compiler is asked to end, or its queue is gone."""
        return self._stop.exists() or not self._lock.exists()

    def resume(self) -> None:
        """Forget that a compiler was asked to end."""
        with suppress(OSError):
            self._stop.unlink()

    def stop(self, seconds: float = 30.0) -> bool:
        """Ask the compiler to end, and wait until it has; whether there was one. Raises OSError where it cannot be
        asked, TimeoutError."""
        if not self.lives:
            return False
        self._stop.touch()
        end = time.monotonic() + seconds
        while self.lives:
            if time.monotonic() > end:
                raise TimeoutError
            time.sleep(0.02)
        self.resume()
        return True

    @property
    def _lock(self) -> Path:
        return self.folder / "lock"

    @property
    def _stop(self) -> Path:
        return self.folder / "stop"

    def _failed(self, key: str) -> Path:
        return self.folder / f"failed-{key[:32]}.json"

    def _files(self, pattern: str) -> list[Path]:
        return sorted(self.folder.glob(pattern)) if self._is_own() else []

    def _prepare(self) -> None:
        """Create the folder, which holds commands: nobody else may write there. Raises OSError."""
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            self.folder.mkdir(mode=0o700)
        if not self._is_own():
            raise PermissionError(f"{self.folder} belongs to somebody else")

    def _is_own(self) -> bool:
        try:
            state = self.folder.lstat()
        except OSError:
            return False
        return self.folder.is_dir() and (not hasattr(os, "getuid") or state.st_uid == os.getuid())


def _put(path: Path, value: Any) -> None:
    """Let a value appear in a file. Raises OSError."""
    put_text(path, json.dumps(encode(value)))


def _read(kind: type[T], path: Path) -> T | None:
    """The value in a file; None where there is none, or it is damaged."""
    try:
        return decode(kind, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, ArtifactError):
        return None


def _is_whole(path: Path) -> bool:
    """Whether a file holds what some version may have written."""
    try:
        return isinstance(json.loads(path.read_text(encoding="utf-8")), dict)
    except (OSError, ValueError):
        return False
