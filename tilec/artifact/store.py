"""Atomic files, either complete or absent: written under another name in the same folder, synced, then renamed."""

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tilec.errors import TilecError, UsageError, unreadable

_ASIDE = re.compile(r"\..+\.[0-9a-f]{8}\.tmp")
"""Names of files that are being written."""


@contextmanager
def atomic_open(path: Path, final_name: Callable[[], str] | None = None) -> Iterator[IO[bytes]]:
    """A binary file that appears at `path` when the block ends without an exception; otherwise nothing is left.

    `final_name` gives the file's name then, where it depends on the content. Missing folders are created, and removed
    again on failure (full disk, no permission, Ctrl-C). Raises TilecError with the folder, UsageError for a path
    without a name and where the block cannot open a file that it reads.
    """
    require_name(path)
    created: list[Path] = []
    aside = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        created = make_folders(path.parent)
        with open(aside, "xb") as file:
            try:
                yield file
            except OSError as error:
                if error.filename is not None:  # of another file, which the block reads
                    raise unreadable(error, str(error.filename)) from error
                raise
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path.with_name(final_name()) if final_name else path)
    except BaseException as error:
        with suppress(OSError):
            aside.unlink()
        for folder in created:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise unwritable(error, path) from error
        raise


def require_name(path: Path) -> None:
    """Raise UsageError for a path to write to that has no name."""
    if not path.name:
        raise UsageError(f"{str(path)!r} names no file", hint="Name the file that is to be written.")


def unwritable(error: OSError, path: Path) -> TilecError:
    """The error for a file that cannot be written, with the folder."""
    hint = "Free some space or choose another folder with -o."
    return TilecError(f"cannot write {path.name}: {error.strerror or error}", str(path.parent), hint)


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` to `path` atomically. Raises TilecError with the folder."""
    with atomic_open(path) as file:
        file.write(data)


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically, in UTF-8 and with unchanged newlines."""
    write_bytes(path, text.encode())


def put_text(path: Path, text: str) -> None:
    """Write what can be found out again into a folder that exists: atomically, but a machine that stops may lose it,
    or leave damage. Raises OSError."""
    aside = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        aside.write_text(text, encoding="utf-8")
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            aside.unlink()
        raise


def touch(path: Path) -> None:
    """Set the modification time of `path` to now without changing its bytes, for make; where nothing may be written it
    stays."""
    try:
        os.utime(path)
    except OSError as error:
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            return
        raise TilecError(f"cannot touch {path.name}: {error.strerror}", str(path.parent)) from error


def remove_leftovers(folder: Path) -> None:
    """Remove what ended processes were writing into `folder`, to which no other process writes now."""
    with suppress(OSError):
        for path in folder.iterdir():
            if _ASIDE.fullmatch(path.name):
                path.unlink()


def make_folders(folder: Path) -> list[Path]:
    """Create `folder` and its missing parents; returns the new ones, innermost first. Removes them on failure."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    created: list[Path] = []
    try:
        for new in reversed(missing):
            new.mkdir(exist_ok=True)
            created.insert(0, new)
    except OSError:
        for new in created:
            with suppress(OSError):
                new.rmdir()
        raise
    return created
