"""A lock between processes: a file that one of them holds; whoever dies gives it back."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file `path`, made when it is not there, waiting for whoever has it.

    The holder may remove the file before the block ends: who waits for it then makes a new one. Raises OSError when
    the file cannot be made.
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
    """Wait for the lock of an open file; it ends when the file is closed."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
                return
            except OSError:  # it gives up after ten seconds
                continue
    fcntl.flock(descriptor, fcntl.LOCK_EX)
