"""Builder and timer of candidate plans, each in a process of its own."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from tilec.abi.manifest import FILE
from tilec.artifact import Artifact
from tilec.bench.runners import Array, Runner
from tilec.errors import TilecError, UnavailableError
from tilec.ir.plan import Plan
from tilec.progress import unseen
from tilec.verify.inputs import Draw, random_tensors
from tilec.verify.nodes import nodes_of

if TYPE_CHECKING:
    from tilec.spec.device import DeviceSpec
    from tilec.spec.recipe import CodegenOptions

DRAW = Draw(seed=0)

SLOW = 3.0
"""A candidate whose first run takes this many times as long as the best one's is not timed further."""

SHORT = 0.01
"""Seconds below which a first run is not representative: memory is touched and code fetched for the first time."""


class Builder:
    """Builds plans for a device; object files that plans share are cached in `cache`, temporary files beside it."""

    def __init__(self, device: DeviceSpec, options: CodegenOptions, cache: Path) -> None:
        self._device = device
        self._options = options
        self._cache = cache
        tempfile.tempdir = str(cache.parent)  # temporary files of a killed compiler are removed with the cache

    def build(self, plan: Plan, folder: Path, seconds: float) -> str | None:
        """Build into `folder`; returns the error message, None on success. Raises UnavailableError where nothing can be
        built.

        An alarm ends the process soon after `seconds`, even if its parent has died.
        """
        from tilec.codegen.driver import codegen

        with _at_most(seconds):
            try:
                body = codegen(
                    plan,
                    self._device,
                    self._options,
                    folder=folder,
                    cache=self._cache,
                    advance=unseen,
                )
                Artifact("kernels", {}, body).write(folder / FILE)
            except UnavailableError:
                raise
            except TilecError as error:
                return error.message
            except Exception as error:  # any failure concerns this candidate only
                return f"{type(error).__name__}: {error}"
        return None


class Timer:
    """Times built plans on random inputs, which plans with the same `contest` number share."""

    def __init__(self) -> None:
        self._contest = -1
        self._drawn: dict[str, Array] = {}

    def time(self, plan: Plan, folder: Path, contest: int, seconds: float, best: float, limit: float) -> float:
        """Seconds of the fastest run, after about `seconds` of warming up and in about `seconds` more.

        A candidate that is far slower than `best` is run once. An alarm ends the process soon after `limit` seconds.
        """
        from tilec.runtime import load

        with _at_most(limit):
            session = load(folder)
            feeds = self._feeds(plan, contest)
            out = session.to_device(session.run(feeds))
            feeds = session.to_device(feeds)
            runner = Runner(lambda: session.run(feeds, out=out))
            (first,) = runner.times(1)
            if first > max(SHORT, SLOW * best):
                return first
            return min(runner.times(runner.calibrate(seconds)))

    def _feeds(self, plan: Plan, contest: int) -> dict[str, Array]:
        """Random inputs; those of the previous plan in the contest are reused where name and shape agree."""
        previous = self._drawn if contest == self._contest else {}
        shapes = {port.tensor: plan.tensors[port.tensor] for port in plan.inputs}
        self._contest, self._drawn = contest, {}
        for name, tensor in shapes.items():
            key = f"{name} {tensor}"
            if key not in previous:
                previous[key] = random_tensors([name], nodes_of(plan), plan.tensors, DRAW)[name]
            self._drawn[key] = previous[key]
        return {name: self._drawn[f"{name} {tensor}"] for name, tensor in shapes.items()}


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Let the system end this process when the block takes far longer than `seconds`, where it can."""
    if not hasattr(signal, "alarm"):
        yield
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(ceil(2 * seconds) + 1)
    try:
        yield
    finally:
        signal.alarm(0)
