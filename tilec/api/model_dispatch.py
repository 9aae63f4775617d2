"""The compiled model that serves a call: one for each set of sizes, compiled or loaded when it is first asked for."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Protocol

from tilec.api.compiling import available, compiled_folder, damaged
from tilec.api.request import Request, keyed
from tilec.api.warn_once import warn_once
from tilec.errors import ArtifactError, TilecError

log = logging.getLogger("tilec")

KEPT = 8
"""Compiled models that a session holds in memory, those used last; the others are loaded again from the cache."""


class Runnable(Protocol):
    """Something that computes the outputs: a loaded model, or onnxruntime for the time being."""

    def run(self, feeds: "Mapping[str, Any]", out: "Mapping[str, Any] | None" = None) -> "dict[str, Any]":
        """Outputs by name."""


class ModelDispatch:
    """The compiled models of one session. Any number of threads may ask at the same time; each is made once.

    `sizes` of an entry are given by the caller for the key that it chose. With `peer`, that serves while a model is
    compiled in the background, and for good when that fails.
    """

    def __init__(self, request: Request, threads: int | None, peer: "Callable[[], Runnable] | None") -> None:
        self._request = request
        self._threads = threads
        self._peer = peer
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
        if self._peer is None or available(request):
            self._make(key, request, future)
        else:
            work = (key, request, future)
            threading.Thread(target=self._make, args=work, name="tilec-compile", daemon=True).start()
        return future

    def get(self, key: Any, sizes: Mapping[str, int]) -> Runnable:
        """The model for `key` and its sizes; while that is compiled: waits, or the peer. Raises TilecError."""
        future = self.begin(key, sizes)
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

    def _make(self, key: Any, request: Request, future: "Future[Runnable]") -> None:
        """Compile and load."""
        try:
            loaded = self._load(request)
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

    def _load(self, request: Request) -> Runnable:
        from tilec.runtime import load

        folder = compiled_folder(request)
        try:
            return load(folder, threads=self._threads)
        except ArtifactError as error:
            log.warning("compiling again: %s", error.message)
        damaged(folder)
        return load(compiled_folder(request), threads=self._threads)
