"""Locks between processes on a file or a folder; the system releases them when their holder ends.

Where files cannot be locked (some network file systems), processes of one machine lock a file in its folder of
temporary files in their place.
"""

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tilec.artifact.digest import digest_bytes
from tilec.artifact.store import make_folders

_PAUSE = 0.02
"""Seconds between two attempts at a lock."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock on the file `path`, which is created if missing; waits for the current holder.

    The holder may remove the file before the block ends: a waiting process then creates a new one. Raises OSError when
    the file cannot be created.
    """
    descriptor = _held(path, None)
    assert descriptor is not None
    try:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def locked_within(path: Path, seconds: float) -> Iterator[bool]:
    """Hold a lock as `locked` does, and yield True; False where another process has it for as many seconds."""
    descriptor = _held(path, seconds)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock on a file."""
    if not path.exists():
        return False
    with locked_within(path, 0) as free:
        return not free


def _held(path: Path, seconds: float | None) -> int | None:
    """The descriptor of the locked file; None where it is another's after these seconds (None: waits)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        descriptor = _opened(path)
        try:
            while not _lock(descriptor, wait=end is None):
                if end is not None and time.monotonic() >= end:
                    os.close(descriptor)
                    return None
                time.sleep(_PAUSE)
        except OSError as error:
            os.close(descriptor)
            elsewhere = _elsewhere(path)
            if error.errno not in _NO_LOCKS or path == elsewhere:
                raise
            path = elsewhere
            continue
        except BaseException:
            os.close(descriptor)
            raise
        if _is_current(path, descriptor):
            return descriptor
        os.close(descriptor)


_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
"""Errors of file systems without locks."""


def _elsewhere(path: Path) -> Path:
    """The file that processes of this machine lock where that at `path` cannot be."""
    from tempfile import gettempdir

    if path.parent == Path(gettempdir()):
        return path
    return Path(gettempdir()) / f"tilec-{digest_bytes(str(path.absolute()).encode())[:32]}.lock"


def _opened(path: Path) -> int:
    """A file to lock; that of another user, who shares the folder, is opened to be read."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


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


def _lock(descriptor: int, wait: bool) -> bool:
    """Whether an open file is locked now, by `wait` when its lock is free; closing the file releases it."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
