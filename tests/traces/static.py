"""Processor time of the model for all sizes, against models that are compiled for one size each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.traces.compiling import compiled
from tests.traces.feeds import Interface
from tests.traces.runtimes import Tilec
from tests.traces.trace import Sizes, Trace
from tests.traces.turns import started

ROUNDS, RUNS = 5, 3
"""Turns of either model, and the inferences in each of them."""


@dataclass(frozen=True, slots=True)
class Against:
    """Processor seconds of an inference at one size: of the model for all sizes, and of the one for this size alone."""

    sizes: Sizes
    every: float
    alone: float


def spread_over(calls: Sequence[Sizes], count: int) -> list[Sizes]:
    """So many different sizes of the calls, evenly from the least to the largest."""
    different = sorted({tuple(sizes.items()) for sizes in calls}, key=lambda items: prod(size for _, size in items))
    steps = min(count, len(different))
    places = [round(step * (len(different) - 1) / max(1, steps - 1)) for step in range(steps)]
    return [dict(different[place]) for place in dict.fromkeys(places)]


def against_static(
    model: Path,
    folder: Path,
    trace: Trace,
    chosen: Sequence[Sizes],
    interface: Interface,
    advance: Callable[[int, int], None],
) -> list[Against]:
    """Compile `model` for each of the sizes and time it beside the one in `folder`, in turns, on one thread each.

    Threads that wait for work take processor time too, therefore one.
    """
    found = []
    for sizes in chosen:
        with TemporaryDirectory(prefix="tilec-traces-") as scratch:
            compiled(model, Path(scratch) / "static", sizes)
            places = {"every": (Tilec, folder), "alone": (Tilec, Path(scratch) / "static")}
            with started(places, trace, interface, 1) as remotes:
                rounds: dict[str, list[float]] = {name: [] for name in remotes}
                for _ in range(ROUNDS):
                    for name, remote in remotes.items():
                        rounds[name].append(remote.call("processor_seconds", sizes, RUNS))
        found.append(Against(sizes, min(rounds["every"]), min(rounds["alone"])))
        advance(len(found), len(chosen))
    return found
