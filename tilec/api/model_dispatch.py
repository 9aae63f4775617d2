"""Compiled models of a session by what they were compiled for: any size, or one set of sizes each."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tilec.api.after_fork import renew
from tilec.api.compile_queue import CompileQueue
from tilec.api.errands import Gate, run_later
from tilec.api.load_compiled import load_compiled
from tilec.api.recording import Runnable
from tilec.api.request import Request, available, keyed, keyed_if_known
from tilec.api.serving import Serving
from tilec.api.warn_once import warn_once
from tilec.api.while_compiling import NotReadyError
from tilec.errors import TilecError

log = logging.getLogger("tilec")

NOW = nullcontext()

KEPT = 8
"""Compiled models that a session holds in memory, those used last; the others are loaded again from the cache."""


class ModelDispatch:
    """The compiled models that calls wait for. Any number of threads may ask at the same time; each is made once.

    `sizes` of an entry, those that are bound, are given by the caller for the key that it chose. Where calls do not
    wait, `peer` serves while a model is compiled in the background, and for good when that fails, or the caller has
    something that does.
    """

    def __init__(
        self, request: Request, serving: Serving, peer: "Callable[[], Runnable]", queue: CompileQueue, gate: Gate
    ) -> None:
        self._request = request
        self._gate = gate
        self._serving = serving
        self._waits = serving.meanwhile == "wait"
        self._peer = peer
        self._queue = queue
        self._made: OrderedDict[Any, Future[Runnable]] = OrderedDict()
        self._lock = threading.Lock()
        renew(self)

    def after_fork(self) -> None:
        """What was not ready is asked for again."""
        self._lock = threading.Lock()
        self._made = OrderedDict((key, future) for key, future in self._made.items() if future.done())

    def ready(self, key: Any) -> Runnable | None:
        """The model for `key` if it is loaded, without waiting."""
        with self._lock:
            future = self._made.get(key)
            if future is None or not future.done():
                return None
            self._made.move_to_end(key)
        return None if future.exception() else future.result()

    def begin(self, key: Any, sizes: Mapping[str, int]) -> "Future[Runnable]":
        """Have the model for `key` and its sizes made, here or, where calls do not wait, in the background.

        What is wrong with the request itself nothing hides: raises UsageError.
        """
        with self._lock:
            known = self._made.get(key)
            if known is not None:
                return known
            future = self._made[key] = Future()
            self._forget_oldest()
        background = not self._waits
        detached = background and self._serving.detached
        request = replace(self._request, sizes=dict(sizes), background=background, detached=detached)
        try:
            request = keyed_if_known(request) if background else keyed(request)
        except BaseException as error:
            self._fail(key, future, error)
            if background:
                raise
            return future
        if available(request):
            self._make(key, request, future)
        elif self._waits:
            self._make(key, request, future, turn=self._queue.turn())
        else:
            self._begin_in_background(key, request, future)
        return future

    def _begin_in_background(self, key: Any, request: Request, future: "Future[Runnable]") -> None:
        serves = "onnxruntime" if self._serving.meanwhile == "fallback" else "the program"
        log.info("%s: %s serves until it is compiled (`tilec cache list`)", Path(request.model).name, serves)
        if self._serving.meanwhile == "fallback":
            run_later(self._gate, partial(self._ask, key, request, future), request if request.detached else None)
        else:
            self._ask(key, request, future)

    def _ask(self, key: Any, request: Request, future: "Future[Runnable]") -> None:
        """Ask the compiler of the cache now, for this process may end before it is this one's turn."""
        from tilec.api import in_background

        try:
            asked = request.detached and in_background.ask(request)
        except Exception as error:
            self._fail(key, future, error)
            return
        wait = partial(in_background.made, request) if asked else lambda: request
        self._queue.add(lambda: self._make(key, request, future, wait))

    def get(self, key: Any, sizes: Mapping[str, int]) -> Runnable:
        """The model for `key` and its sizes, or what serves meanwhile, see `serving`."""
        return self.serving(self.begin(key, sizes))

    def serving(self, future: "Future[Runnable]") -> Runnable:
        """What `begin` has had made; while that is compiled: waits, the peer, or NotReadyError. Raises TilecError."""
        if self._serving.meanwhile == "caller" and not future.done():
            raise NotReadyError
        if self._serving.meanwhile != "fallback" or (future.done() and not future.exception()):
            return future.result()
        try:
            peer = self._peer()
        except TilecError:  # there is nothing else to serve from
            self._gate.open()
            return future.result()
        if future.done():
            warn_once(f"the model is not compiled and stays on onnxruntime: {future.exception()}")
        return peer

    def _forget_oldest(self) -> None:
        """Drop the models that were used least recently, except those that are still being made."""
        done = [key for key, future in self._made.items() if future.done()]
        for key in done[: max(0, len(self._made) - KEPT)]:
            del self._made[key]

    def _make(
        self,
        key: Any,
        request: Request,
        future: "Future[Runnable]",
        wait: Callable[[], Request] | None = None,
        turn: AbstractContextManager[None] = NOW,
    ) -> None:
        """Compile, unless somebody else does whom we `wait` for, and load, when it is this one's turn."""
        awaited = not self._waits and not available(request)
        try:
            with turn:
                loaded = load_compiled(wait() if wait else request, self._serving.threads)
            if awaited:
                log.info("%s: it is compiled, and serves from the next call on", Path(request.model).name)
        except BaseException as error:
            self._fail(key, future, error)
            return
        with self._lock:
            self._forget_oldest()
            future.set_result(loaded)

    def _fail(self, key: Any, future: "Future[Runnable]", error: BaseException) -> None:
        """Whoever waits gets the error, and the next call tries again."""
        if self._waits:
            with self._lock:
                self._made.pop(key, None)
        future.set_exception(error)
