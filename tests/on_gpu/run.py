"""`python -m tests.on_gpu.run PLANS --out OUT`: everything that a GPU is asked, in the order of its worth.

PLANS is what `python -m tests.on_gpu.prepare` made. A step writes its results as JSON as they come; a run into the same
folder goes on where the last one ended. `--list` says what would be done.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from os import cpu_count
from pathlib import Path

from tests.on_gpu.anchors import anchors
from tests.on_gpu.calibrate import calibrate
from tests.on_gpu.candidates import candidates
from tests.on_gpu.card import Card, LostDeviceError
from tests.on_gpu.case import Case
from tests.on_gpu.cases import COUNTED, PROFILED, cases
from tests.on_gpu.correct import correct, is_wrong
from tests.on_gpu.counters import counters
from tests.on_gpu.peers import Peers
from tests.on_gpu.supervise import LOST, restore, run_step
from tests.on_gpu.whole_models import whole_models

STEPS: Mapping[str, Callable[[Card], None]] = {
    "correct": correct,
    "calibrate": calibrate,
    "anchors": anchors,
    "models": whole_models,
    "counters": counters,
    "candidates": candidates,
}
"""Step -> what does it, in a process of its own."""

PEERS = "peers"


def main(arguments: Sequence[str]) -> int:
    """Returns 1 if a result is wrong."""
    options = _options(arguments)
    chosen = cases(options.words)
    if options.list:
        print("\n".join([*(f"step {step}" for step in options.steps), *(case.name for case in chosen)]))
        return 0
    end = options.end or time.monotonic() + options.seconds
    card = Card(options.out, options.work, chosen, end, not options.emulator)
    if options.child:
        try:
            STEPS[options.child](card)
        except LostDeviceError:
            return LOST
        return 0
    return _run(card, options, arguments)


def _run(card: Card, options: argparse.Namespace, arguments: Sequence[str]) -> int:
    begin = time.monotonic()
    card.chosen = [case for case in card.chosen if any(_lacks(card, step, case) for step in options.steps)]
    pool = restore(card, options.plans, options.jobs or max(1, (cpu_count() or 4) - 2))
    peers = Peers()
    if PEERS in options.steps and card.timed:
        peers.start(card)
    command = [sys.executable, "-m", "tests.on_gpu.run", *arguments, "--end", str(card.end), "--child"]
    for step in options.steps:
        if step == PEERS:
            peers.time(card)
        else:
            run_step(card, step, command)
        print(f"{time.monotonic() - begin:6.1f} s  {step}: {len(card.found(step))}", flush=True)
    pool.shutdown(cancel_futures=True)
    found = card.found("correct")
    wrong = [name for name, told in found.items() if is_wrong(told)]
    print(f"{len(found)} cases, {len(wrong)} of them wrong: {', '.join(wrong) or 'none'}; results in {card.out}")
    return int(bool(wrong))


def _lacks(card: Card, step: str, case: Case) -> bool:
    """Whether a step has something to do with a case that it has not done."""
    of = {
        "correct": True,
        "anchors": not case.zoo,
        "models": bool(case.zoo),
        "counters": case.name in COUNTED,
        "candidates": case.name in PROFILED,
    }
    return of.get(step, False) and case.name not in card.found(step)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.on_gpu.run", description="Measures on a GPU.")
    parser.add_argument("plans", type=Path, metavar="PLANS")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only cases that every word is part of")
    parser.add_argument("--out", type=Path, default=Path("build/on-gpu"), metavar="OUT")
    parser.add_argument("--work", type=Path, default=Path("/tmp/tilec-on-gpu"), metavar="FOLDER", help="of kernels")
    every = (*STEPS, PEERS)
    parser.add_argument("--steps", nargs="+", choices=every, default=every, metavar="STEP")
    parser.add_argument("--seconds", type=float, default=480, help="after which nothing new is begun")
    parser.add_argument("--jobs", type=int, default=0, metavar="N", help="processes that restore cases")
    parser.add_argument("--emulator", action="store_true", help="check cases in the emulator, time nothing")
    parser.add_argument("--list", action="store_true", help="print the steps and the cases, and stop")
    parser.add_argument("--end", type=float, default=0.0, help=argparse.SUPPRESS)
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
