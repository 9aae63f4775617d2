"""Models compiled for sizes that a session sees often, beside the one that takes any size (B09)."""

import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, cast, get_args

from tilec.api.after_fork import renew
from tilec.api.cache import Cache
from tilec.api.cache_eviction import folder_bytes, room
from tilec.api.compile_queue import LATER, CompileQueue
from tilec.api.feeds import ShapeKey
from tilec.api.load_compiled import load_compiled
from tilec.api.recording import Runnable
from tilec.api.request import SPECIALIZE_VARIABLE, Request, available, keyed
from tilec.errors import TilecError, UsageError

log = logging.getLogger("tilec")

MOST = 8
"""Specialised models of a session."""

Specialize = Literal["off", "likely"]
"""Whether sizes that are seen often get models of their own."""


def chosen_mode(asked: str | None) -> Specialize:
    """What is asked for, else what the variable says, else `off`. Raises UsageError for anything else."""
    mode = asked if asked is not None else os.environ.get(SPECIALIZE_VARIABLE) or "off"
    for known in get_args(Specialize):
        if mode == known:
            return cast("Specialize", known)
    name = "specialize" if asked is not None else SPECIALIZE_VARIABLE
    raise UsageError(f'{name} is {mode!r}, it is "off" or "likely"')


class Specializations:
    """The specialised models of a session, by the shapes that decide the sizes. They are compiled in the background,
    behind everything else; what fails is told to the log and not tried again."""

    def __init__(self, request: Request, threads: int | None, queue: CompileQueue) -> None:
        self._request = request
        self._threads = threads
        self._queue = queue
        self._lock = threading.Lock()
        self._asked: set[ShapeKey] = set()
        self._made: dict[ShapeKey, Runnable] = {}
        renew(self)

    def after_fork(self) -> None:
        """What was not ready is asked for again."""
        self._lock = threading.Lock()
        self._asked = set(self._made)

    def ready(self, key: ShapeKey | None) -> Runnable | None:
        """The model for these shapes, if there is one."""
        return self._made.get(key) if key is not None else None

    def wants(self, key: ShapeKey) -> bool:
        """Whether a model for these shapes was not asked for yet, and there may be another one."""
        return key not in self._asked and len(self._asked) < MOST

    def ask(self, key: ShapeKey, sizes: Mapping[str, int]) -> None:
        """Have a model made for sizes that are frequent, once, while there are fewer than `MOST`."""
        with self._lock:
            if not self.wants(key):
                return
            self._asked.add(key)
        self._queue.add(lambda: self._make(key, sizes), LATER)

    def _make(self, key: ShapeKey, sizes: Mapping[str, int]) -> None:
        from tilec.ir.sizes import sizes_text

        told = sizes_text(sizes)
        try:
            request = keyed(replace(self._request, sizes=dict(sizes), background=True, detached=True, later=True))
            if not available(request) and not self._fits():
                log.info("not specialised for %s: the cache is full", told)
                return
            self._made[key] = load_compiled(request, self._threads)
        except TilecError as error:
            log.info("not specialised for %s: %s", told, error.message)
        except Exception:  # the model for any size serves on
            log.exception("not specialised for %s", told)
        else:
            log.info("specialised for %s", told)

    def _fits(self) -> bool:
        """Whether one more model, as large as that for any size, drives nothing out of the cache."""
        cache = Cache(Path(self._request.cache))
        return folder_bytes(cache.session(keyed(self._request).key)) <= room(cache)
