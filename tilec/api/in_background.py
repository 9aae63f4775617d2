"""Models that the compiler in the background makes for a session, and for programs that ask later."""

import json
import logging
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from tilec.api.cache import Cache
from tilec.api.failures import error_of
from tilec.api.request import Request, available, keyed_if_known
from tilec.artifact import digest_object, encode, tools
from tilec.background import Order, Queue, order_of, start
from tilec.errors import TilecError

log = logging.getLogger("tilec")

LOOKS = (0.02, 0.25)
"""Seconds between two looks whether a model is there: the first, and the most."""

RESTARTS = (1.0, 60.0)
"""Seconds between two starts of a compiler that ended before its time: the first, and the most."""


def ask(request: Request) -> bool:
    """Have a model compiled in the background, and for good: it is done though this process ends. Returns whether
    anybody will. Raises the TilecError of an earlier attempt that is not to be repeated yet."""
    if not sys.executable or os.name != "posix" or not Cache(Path(request.cache)).writable:
        return False
    queue, order = Queue(Path(request.cache)), _order(request)
    _require_untried(queue, order)
    try:
        queue.add(order)
        start(queue)
    except OSError as error:
        log.info("there is no compiler in the background: %s", error)
        queue.remove(order)
        return False
    return True


def made(request: Request) -> Request:
    """The request with its key, once the model that was asked for is there.

    Raises the TilecError of its compilation, also an earlier one.
    """
    queue, order = Queue(Path(request.cache)), _order(request)
    pause, restart, patience = LOOKS[0], time.monotonic() + RESTARTS[0], RESTARTS[0]
    given_up = False
    while True:
        request = request if request.key else keyed_if_known(request)
        if available(request):
            return request
        _require_untried(queue, order)
        if given_up:
            raise TilecError("the compiler in the background gave it up", order.what, "The next session asks again.")
        given_up = not queue.has(order)  # looked at before the model and a failure, which appear first
        if not given_up and time.monotonic() > restart:
            _revive(queue)
            patience = min(2 * patience, RESTARTS[1]) if not queue.lives else RESTARTS[0]
            restart = time.monotonic() + patience
        if not given_up:
            time.sleep(pause)
            pause = min(1.2 * pause, LOOKS[1])


def _require_untried(queue: Queue, order: Order) -> None:
    failure = queue.failure(order.key)
    if failure is not None and failure.holds(time.time()):
        raise error_of(failure.kind, failure.message, failure.place, failure.hint)


def _revive(queue: Queue) -> None:
    """Start another compiler where the one that was to do the work has ended."""
    try:
        start(queue)
    except OSError as error:
        log.info("there is no compiler in the background: %s", error)


def _order(request: Request) -> Order:
    cache = Cache(Path(request.cache).absolute())
    given = json.dumps(encode(replace(request, cache=str(cache.root), detached=False, later=False)))
    key = request.key or digest_object({"request": given, "tools": tools()})
    result = str(cache.session(request.key)) if request.key else ""
    return order_of(key, Path(request.model).name, "tilec.api.background_worker", given, result, int(request.later))
