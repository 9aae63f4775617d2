"""Raised process priority during timing, where the system permits it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

AUTOGROUP = Path("/proc/self/autogroup")
RAISED = "-10"


@contextmanager
def precedence(file: Path = AUTOGROUP) -> Iterator[bool]:
    """Raise the priority of this session's scheduling group in the block; yields whether that worked."""
    try:
        before = file.read_text().split()[-1]
        file.write_text(RAISED)
    except (OSError, IndexError):
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):
            file.write_text(before)
