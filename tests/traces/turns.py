"""A trace through several runtimes in turns: every call of one size by each of them, before the next size."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.traces.feeds import Interface
from tests.traces.runtimes import REFERENCE, Load
from tests.traces.timed import Timed
from tests.traces.trace import Sizes, Trace
from tilec.bench.compare import PAUSE
from tilec.bench.priority import precedence
from tilec.bench.runners import Needs
from tilec.progress import unseen
from tilec.verify.remote import Remote


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the trace: its sizes, whether they are `new` in it, and by runtime the seconds of the call, of the
    same call `again`, and the largest error against the reference, once for each of the sizes."""

    sizes: Sizes
    new: bool
    seconds: Mapping[str, float]
    again: Mapping[str, float]
    error: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Measured:
    """All calls of a trace, and what each runtime took for loading and in memory."""

    calls: tuple[Call, ...]
    needs: Mapping[str, Needs]


Place = tuple[Load, Path]
"""A runtime and the model or folder that it loads."""


def measured(
    runtimes: Mapping[str, Place],
    trace: Trace,
    calls: Sequence[Sizes],
    interface: Interface,
    threads: int,
    scratch: Path,
    advance: Callable[[int, int], None] = unseen,
) -> Measured:
    """Run the calls through all runtimes in turns, each in a warm process: it has run the trace's least sizes before.

    Results are compared in `scratch`, while no runtime works. Raises TilecError when one cannot run the model.
    """
    with started(runtimes, trace, interface, threads) as remotes, precedence():
        for remote in remotes.values():
            remote.call("call", trace.least)
        done: list[Call] = []
        for sizes in calls:
            seen = [call.sizes for call in done]
            new = sizes not in (trace.least, *seen)
            done.append(_call(remotes, sizes, new, None if sizes in seen else scratch))
            advance(len(done), len(calls))
        return Measured(tuple(done), {name: remote.call("needs") for name, remote in remotes.items()})


@contextmanager
def started(
    runtimes: Mapping[str, Place], trace: Trace, interface: Interface, threads: int
) -> Iterator[dict[str, Remote]]:
    """The runtimes in processes of their own, all of them ready."""
    with ExitStack() as stack:
        remotes = {
            name: stack.enter_context(Remote(name, Timed, load, place, trace, interface, threads))
            for name, (load, place) in runtimes.items()
        }
        for remote in remotes.values():
            remote.ready()
        yield remotes


def _call(remotes: Mapping[str, Remote], sizes: Sizes, new: bool, scratch: Path | None) -> Call:
    times: dict[str, tuple[float, float]] = {}
    for name, remote in remotes.items():
        time.sleep(PAUSE)  # the threads of the previous one stop spinning
        times[name] = remote.call("call", sizes)
    seconds, again = ({name: pair[turn] for name, pair in times.items()} for turn in (0, 1))
    return Call(sizes, new, seconds, again, {} if scratch is None else _errors(remotes, scratch))


def _errors(remotes: Mapping[str, Remote], scratch: Path) -> dict[str, float]:
    """The largest error of each runtime's last results against those of the reference."""
    try:
        for name, remote in remotes.items():
            remote.call("store", scratch / name)
        wanted = sorted((scratch / REFERENCE).iterdir())
        return {
            name: max(relative_error(np.load(scratch / name / file.name), np.load(file)) for file in wanted)
            for name in remotes
            if name != REFERENCE
        }
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference relative to the largest value; infinite where shapes differ or a value is not finite."""
    if found.shape != wanted.shape:
        return float("inf")
    if not wanted.size:
        return 0.0
    error = float(np.max(np.abs(found - wanted)) / max(float(np.max(np.abs(wanted))), np.finfo(np.float32).tiny))
    return error if np.isfinite(error) else float("inf")
