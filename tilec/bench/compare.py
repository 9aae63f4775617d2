"""Interleaved timing: a compiled model and its peers in turns, each in a warm process, over several sets of
processes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tilec.bench.peers import chosen
from tilec.bench.priority import precedence
from tilec.bench.runners import Array, Needs, compiled
from tilec.bench.statistics import Ratio, ratio
from tilec.progress import Advance, unseen
from tilec.verify.remote import Remote

OURS = "tilec"

PAUSE = 0.05
"""Seconds between two turns, in which the threads of the previous one stop spinning."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Parameters of the timing: `rounds` in each of `processes` sets of processes, turns of about `seconds`."""

    threads: int
    processes: int = 3
    rounds: int = 5
    seconds: float = 0.1


@dataclass(frozen=True, slots=True)
class Comparison:
    """Seconds of each runner in every round, its loading time and memory, and whether the process priority was
    raised."""

    rounds: Mapping[str, Sequence[float]]
    needs: Mapping[str, Needs]
    precedence: bool

    def seconds(self, runner: str) -> float:
        """The median of a runner's rounds."""
        return median(self.rounds[runner])

    def ratios(self) -> dict[str, Ratio]:
        """Map from peer to the ratio of its time to ours."""
        return {name: ratio(times, self.rounds[OURS]) for name, times in self.rounds.items() if name != OURS}


def time_interleaved(
    folder: Path,
    model: Path,
    feeds: Mapping[str, Array],
    against: Sequence[str],
    timing: Timing,
    advance: Advance = unseen,
    theirs: Mapping[str, Array] | None = None,
) -> Comparison:
    """Time the compiled model in `folder` and `model` on the runtimes `against`, in turns, on the same inputs: `theirs`
    are they as the model takes them, where that is something else.

    Raises UsageError for an unknown runtime and TilecError when one cannot run the model.
    """
    peers = chosen(against)
    rounds: dict[str, list[float]] = {OURS: [], **{name: [] for name in peers}}
    needs: dict[str, Needs] = {}
    total = timing.processes * timing.rounds
    raised = False
    for number in range(timing.processes):
        with ExitStack() as stack:
            runners = {OURS: Remote("the compiled model", compiled, folder, feeds, timing.threads)}
            runners |= {
                name: Remote(name, peer, model, feeds if theirs is None else theirs, timing.threads)
                for name, peer in peers.items()
            }
            for runner in runners.values():
                stack.enter_context(runner)
            for runner in runners.values():
                runner.ready()
            raised = stack.enter_context(precedence())
            runs = {name: _turn(runner, "calibrate", timing.seconds) for name, runner in runners.items()}
            for done in range(timing.rounds):
                for name, runner in runners.items():
                    rounds[name].append(_turn(runner, "round", runs[name]))
                advance(number * timing.rounds + done + 1, total)
            needs = {name: runner.call("needs") for name, runner in runners.items()}
    return Comparison(rounds, needs, raised)


def _turn(runner: Remote, method: str, argument: float) -> float:
    """One call of a runner while all others are idle."""
    time.sleep(PAUSE)
    result: float = runner.call(method, argument)
    return result
