"""A lock between processes on a file; the system releases it when its holder ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
