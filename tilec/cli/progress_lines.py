"""Progress in a log: a line about a running stage at intervals, as long as it runs."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tilec.progress import Advance

SECONDS = 2.0
"""Interval between two lines; `TILEC_PROGRESS` is another one, 0 for no lines."""


def interval() -> float:
    """Seconds between two lines of progress; 0 for none."""
    try:
        return min(max(0.0, float(os.environ.get("TILEC_PROGRESS", SECONDS))), threading.TIMEOUT_MAX)
    except ValueError:
        return SECONDS


@contextmanager
def progress_lines(name: str, tell: Callable[[str], None], seconds: float) -> "Iterator[Advance]":
    """Tell of the stage called `name`, every so many seconds, the step at which it is, how much of that is done, the
    stage's seconds so far and what the step is expected to take yet."""
    begin = time.monotonic()
    at = ("", 0, 0, begin)
    ended = threading.Event()

    def advance(done: int, total: int, step: str = "") -> None:
        nonlocal at
        at = step, done, total, at[3] if step == at[0] else time.monotonic()

    def watch() -> None:
        with suppress(OSError):  # nobody reads any more
            while not ended.wait(seconds):
                tell(progress_line(name, begin, at, time.monotonic()))

    thread = threading.Thread(target=watch, name="tilec-progress", daemon=True)
    thread.start()
    try:
        yield advance
    finally:
        ended.set()
        thread.join()


def progress_line(name: str, begin: float, at: tuple[str, int, int, float], now: float) -> str:
    """A line about a stage that began at `begin` and is `at` a step: its name, done, of how many, since when."""
    step, done, total, since = at
    counted = f"{done} of {total}, " if done < total else ""
    left = ""
    if 0 < done < total:
        left = f", about {(now - since) * (total - done) / done:.0f} s left of this step"
    return f"{name}: {step + ', ' if step else ''}{counted}{now - begin:.0f} s{left}"
