"""Part of the search in a forked child process, because Python computes on one processor per process.

Forking takes a few milliseconds and needs no arguments serialised; only the result is. Where a process cannot be
forked, or dies, the result is None and the parent does all the work itself.
"""

from __future__ import annotations

import os
import pickle
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from tilec.calls_ahead import end_with


@contextmanager
def in_child_process(work: Callable[[], Any]) -> Iterator[Callable[[], Any]]:
    """Run `work` in a child process while this one goes on; yields a function that waits for the result, None on
    failure.

    The child is killed at the end of the block.
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
    with open(reader, "rb") as result:
        try:
            yield lambda: _answer(result.read())
        finally:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _copied() -> int:
    """Fork. The child computes alone and takes no lock that another thread may have held."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _serve(work: Callable[[], Any], writer: int) -> NoReturn:
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        end_with(os.getppid())
        with open(writer, "wb") as answer:
            answer.write(pickle.dumps(work(), pickle.HIGHEST_PROTOCOL))
    finally:
        os._exit(0)


def _answer(data: bytes) -> Any:
    return pickle.loads(data) if data else None
