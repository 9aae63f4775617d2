"""Threads that a process does not wait for when it is interrupted.

LLVM compiles a kernel in one call that nothing can stop: the threads of an executor would keep Python from ending.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import TypeVar

NAME = "tilec-side-by-side"
"""Name of these threads."""

T = TypeVar("T")
R = TypeVar("R")


def map_side_by_side(function: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """The results for all items, in their order, computed on up to `threads` threads.

    Raises the first error once the calls under way are done; an interrupt of the caller at once.
    """
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in range(len(items)):
        waiting.put(number)
    results: dict[int, R] = {}
    errors: list[BaseException] = []

    def work() -> None:
        while not errors:
            try:
                number = waiting.get_nowait()
            except Empty:
                return
            try:
                results[number] = function(items[number])
            except BaseException as error:
                errors.append(error)

    workers = [threading.Thread(target=work, name=NAME, daemon=True) for _ in range(min(threads, len(items)))]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    except BaseException as interrupt:
        errors.append(interrupt)
        raise
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(items))]


def exit_process(code: int) -> None:
    """End with an exit code; without the clean-up of libraries where one of these threads is inside them."""
    if any(thread.name == NAME for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
