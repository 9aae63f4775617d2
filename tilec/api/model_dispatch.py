"""Compiled models of a session by what they were compiled for: any size, or one set of sizes each."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from tilec.api.compile_queue import CompileQueue
from tilec.api.compiling import available
from tilec.api.load_compiled import load_compiled
from tilec.api.recording import Runnable
from tilec.api.request import Request, keyed
from tilec.api.warn_once import warn_once
from tilec.errors import TilecError

KEPT = 8
"""Compiled models that a session holds in memory, those used last; the others are loaded again from the cache."""


class ModelDispatch:
    """The compiled models that calls wait for. Any number of threads may ask at the same time; each is made once.

    `sizes` of an entry, those that are bound, are given by the caller for the key that it chose. With `peer`, that
    serves while a model is compiled in the background, and for good when that fails.
    """

    def __init__(
        self, request: Request, threads: int | None, peer: "Callable[[], Runnable] | None", queue: CompileQueue
    ) -> None:
        self._request = request
        self._threads = threads
        self._peer = peer
        self._queue = queue
        self._made: OrderedDict[Any, Future[Runnable]] = OrderedDict()
        self._lock = threading.Lock()

    def ready(self, key: Any) -> Runnable | None:
        """The model for `key` if it is loaded, without waiting."""
        with self._lock:
            future = self._made.get(key)
            if future is None or not future.done():
                return None
            self._made.move_to_end(key)
        return None if future.exception() else future.result()

    def begin(self, key: Any, sizes: Mapping[str, int]) -> "Future[Runnable]":
        """Have the model for `key` and its sizes made, here or, when a peer serves meanwhile, in the background."""
        with self._lock:
            known = self._made.get(key)
            if known is not None:
                return known
            future = self._made[key] = Future()
            self._forget_oldest()
        try:
            request = keyed(replace(self._request, sizes=dict(sizes), background=self._peer is not None))
        except BaseException as error:
            self._fail(key, future, error)
            return future
        if available(request):
            self._make(key, request, future, nullcontext())
        elif self._peer is None:
            self._make(key, request, future, self._queue.turn())
        else:
            self._queue.add(lambda: self._make(key, request, future, nullcontext()))
        return future

    def get(self, key: Any, sizes: Mapping[str, int]) -> Runnable:
        """The model for `key` and its sizes; while that is compiled: waits, or the peer. Raises TilecError."""
        return self.serving(self.begin(key, sizes))

    def serving(self, future: "Future[Runnable]") -> Runnable:
        """What `begin` has had made; while that is compiled: waits, or the peer. Raises TilecError."""
        if self._peer is None or (future.done() and not future.exception()):
            return future.result()
        try:
            peer = self._peer()
        except TilecError:
            return future.result()  # there is nothing else to serve from
        if future.done():
            warn_once(f"the model is not compiled and stays on onnxruntime: {future.exception()}")
        return peer

    def _forget_oldest(self) -> None:
        """Drop the models that were used least recently, except those that are still being made."""
        done = [key for key, future in self._made.items() if future.done()]
        for key in done[: max(0, len(self._made) - KEPT)]:
            del self._made[key]

    def _make(self, key: Any, request: Request, future: "Future[Runnable]", turn: AbstractContextManager[None]) -> None:
        """Compile and load, when it is this one's turn."""
        try:
            with turn:
                loaded = load_compiled(request, self._threads)
        except BaseException as error:
            self._fail(key, future, error)
            return
        with self._lock:
            self._forget_oldest()
            future.set_result(loaded)

    def _fail(self, key: Any, future: "Future[Runnable]", error: BaseException) -> None:
        """Whoever waits gets the error; without a peer the next call tries again."""
        if self._peer is None:
            with self._lock:
                self._made.pop(key, None)
        future.set_exception(error)
