"""Locks between processes on a file or a folder; the system releases them when their holder ends."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tilec.artifact.store import make_folders


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock on the file `path`, which is created if missing; waits for the current holder.

    The holder may remove the file before the block ends: a waiting process then creates a new one. Raises OSError when
    the file cannot be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("ab") as file:
            _lock(file.fileno())
            if _is_current(path, file.fileno()):
                yield
                return


@contextmanager
def folder_locked(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock on a folder, which is created if missing and removed if it is empty in the end.

    Calls `waiting` before it waits for the current holder. Where folders cannot be locked (Windows, some network file
    systems) or created, nothing is held: what writes there says best what is wrong.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    created: list[Path] = []
    descriptor = -1
    try:
        with suppress(OSError):
            while descriptor < 0:
                created += make_folders(folder)
                descriptor = os.open(folder, os.O_RDONLY)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    waiting()
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                if not _is_current(folder, descriptor):
                    os.close(descriptor)
                    descriptor = -1
        yield
    finally:
        for each in created:
            with suppress(OSError):
                each.rmdir()
        if descriptor >= 0:
            os.close(descriptor)


def _is_current(path: Path, descriptor: int) -> bool:
    """Whether an open file is still the one at `path`."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> None:
    """Wait for the lock of an open file; closing the file releases it."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
                return
            except OSError:  # LK_LOCK gives up after ten seconds
                continue
    fcntl.flock(descriptor, fcntl.LOCK_EX)
