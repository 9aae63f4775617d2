"""The file of a tuning record: read whole, replaced whole, by one process at a time."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tilec.artifact import locked, write_text
from tilec.errors import ArtifactError, TilecError, UsageError, unreadable

if TYPE_CHECKING:
    from tilec.scheduler.tuning.record import Record

WRITER = "`tilec schedule --profile --record FILE` writes it."


def existing(place: Path) -> Path:
    """The file of a record that has to be there. Raises UsageError."""
    if not place.is_file():
        raise UsageError("no such tuning record", str(place), WRITER)
    return place


def read_record(place: Path) -> "Record":
    """The record in a file. Raises UsageError when it cannot be read, ArtifactError when it is none."""
    from tilec.scheduler.tuning.record import parse_record

    try:
        text = place.read_text(encoding="utf-8")
    except OSError as error:
        raise unreadable(error, str(place), WRITER) from error
    except UnicodeDecodeError as error:
        raise ArtifactError("not a tuning record: the file is binary", str(place), WRITER) from error
    return parse_record(text, str(place))


def update_record(place: Path, change: "Callable[[Record], Record]") -> "Record":
    """Change the record in a file, which is made when it is not there, while no other process does; returns it.

    Raises what `read_record` and `require_writable` raise.
    """
    from tilec.scheduler.tuning.record import Record, record_text

    there = place.exists()
    if there and (record := read_record(place)) == change(record):
        return record
    require_writable(place)
    lock = place.with_name(f".{place.name}.lock")
    with locked(lock):
        try:
            record = read_record(place) if place.exists() else Record()
            changed = change(record)
            if changed != record or not place.exists():
                write_text(place, record_text(changed))
            return changed
        finally:
            with suppress(OSError):  # another system does not remove open files
                lock.unlink()


def require_writable(place: Path) -> None:
    """Raise TilecError where the record cannot be written: before something is measured for it."""
    folder = next(parent for parent in place.absolute().parents if parent.exists())
    if place.exists() and not (place.stat().st_mode & 0o222 and os.access(place, os.W_OK)):
        raise TilecError("the tuning record is read-only", str(place), "Copy it and name the copy with --record.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise TilecError("cannot write the tuning record: no permission", str(folder), "Name a file with --record.")
