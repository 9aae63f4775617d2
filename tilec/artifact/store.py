"""Files that are either complete or absent: written aside in the same folder, synced, then renamed."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tilec.errors import TilecError


@contextmanager
def atomic_open(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that appears under `path` when the block ends well, and leaves nothing when it does not.

    Missing folders are made, and removed again on failure (full disk, no permission, Ctrl-C).
    Raises TilecError that names the folder.
    """
    made: list[Path] = []
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        made = _make_folders(path.parent)
        with open(aside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException as error:
        with suppress(OSError):
            aside.unlink()
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise TilecError(
                f"cannot write {path.name}: {error.strerror or error}",
                str(path.parent),
                "Free some space or choose another folder with -o.",
            ) from error
        raise


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` to `path` atomically. Raises TilecError that names the folder."""
    with atomic_open(path) as file:
        file.write(data)


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically, in UTF-8 and with its newlines as they are."""
    write_bytes(path, text.encode())


def touch(path: Path) -> None:
    """Make `path` newer than what it depends on without changing its bytes, for make."""
    try:
        os.utime(path)
    except OSError as error:
        raise TilecError(f"cannot touch {path.name}: {error.strerror}", str(path.parent)) from error


def _make_folders(folder: Path) -> list[Path]:
    """Make `folder` and its missing parents; returns those made, innermost first. Removes them on failure."""
    missing: list[Path] = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    made: list[Path] = []
    try:
        for new in reversed(missing):
            new.mkdir(exist_ok=True)
            made.insert(0, new)
    except OSError:
        for new in made:
            with suppress(OSError):
                new.rmdir()
        raise
    return made
