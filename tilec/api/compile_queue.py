"""The compilations of one session: one at a time, those that a call waits for before those that only pay later."""

import heapq
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from tilec.api.after_fork import renew

Work = Callable[[], None]
"""A compilation; it keeps its own result and raises nothing."""

NEEDED, LATER = 0, 1
"""Ranks of compilations: calls are served by something else until it is done; calls are served well as it is."""


class CompileQueue:
    """At most one compilation runs at any time, on the thread that needs it or on one of the queue's own."""

    def __init__(self) -> None:
        self._numbers = count()
        self.after_fork()
        renew(self)

    def after_fork(self) -> None:
        """Nothing waits: what asked for it asks again."""
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: list[tuple[int, int, Work]] = []
        self._at_work = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Compile on this thread, once the compilation that runs is done; those that wait stay behind."""
        with self._turn:
            yield

    def add(self, work: Work, rank: int = NEEDED) -> None:
        """Compile in the background: smaller ranks first, equal ones in the order in which they came."""
        with self._lock:
            heapq.heappush(self._waiting, (rank, next(self._numbers), work))
            if not self._at_work:
                self._at_work = True
                threading.Thread(target=self._work, name="tilec-compile", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._turn:
                with self._lock:
                    if not self._waiting:
                        self._at_work = False
                        return
                    _, _, work = heapq.heappop(self._waiting)
                work()
