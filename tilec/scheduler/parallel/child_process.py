"""beside: a part of a search in a process of its own, for Python computes on one processor only.

The process is a copy of this one, which costs a few milliseconds and needs nothing handed over; only what it finds is.
Where processes cannot be copied, or one dies, nothing is found and the search does all by itself.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

from tilec.spec.cpus import usable_cpus

_SECONDS = 1.0
"""How often a process looks whether the one that waits for it is still there."""


def process_count() -> int:
    """Processes that a search may be divided among."""
    return len(usable_cpus()) if sys.platform == "linux" else 1


@contextmanager
def in_child_process(work: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Do `work` in another process while this one goes on; what is given waits for its result, None if there is none.

    The process ends with the block, whatever it does.
    """
    reader, writer = os.pipe()
    try:
        child = _copied()
    except OSError:
        os.close(reader)
        os.close(writer)
        yield lambda: None
        return
    if child == 0:
        _serve(work, writer)
    os.close(writer)
    with open(reader, "rb") as found:
        try:
            yield lambda: _answer(found.read())
        finally:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _copied() -> int:
    """Fork; the copy computes alone and takes no lock that another thread may have held."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _serve(work: Callable[[], Any], writer: int) -> NoReturn:
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _end_with(os.getppid())
        with open(writer, "wb") as answer:
            answer.write(pickle.dumps(work(), pickle.HIGHEST_PROTOCOL))
    finally:
        os._exit(0)


def _end_with(parent: int) -> None:
    def look(_number: int, _frame: FrameType | None) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS, _SECONDS)


def _answer(data: bytes) -> Any:
    return pickle.loads(data) if data else None
