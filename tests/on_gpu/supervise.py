"""Processes around the device: one a step, begun anew behind a kernel that fails or hangs, and those that restore."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.on_gpu.card import POLL, Card
from tests.on_gpu.case import Case

PATIENCE = 45.0
"""Seconds after which a case that does nothing visible hangs."""

TRIES = 6
"""Processes that a step may lose."""

LOST = 3
"""The exit code of a step whose device fails."""


def restore(card: Card, plans: Path, jobs: int) -> ThreadPoolExecutor:
    """Begin to restore all cases in processes of their own, those with most weights first, each on two processors."""
    pool = ThreadPoolExecutor(jobs)
    card.work.mkdir(parents=True, exist_ok=True)
    usable = sorted(os.sched_getaffinity(0))
    cases = sorted(card.chosen, key=lambda case: -case.elements)
    for number, case in enumerate(cases):
        pair = {usable[(2 * number + each) % len(usable)] for each in range(2)}
        pool.submit(_restore, card, case, plans, pair)
    return pool


def _restore(card: Card, case: Case, plans: Path, processors: set[int]) -> None:
    if card.left > 0 and not card.restored(case):
        told = ",".join(map(str, sorted(processors)))
        command = [sys.executable, "-m", "tests.on_gpu.restore", case.name, str(plans), str(card.work), told]
        with (card.work / f"{case.name}.log").open("w") as log:
            subprocess.run(command, check=False, stdout=log, stderr=log, timeout=max(1.0, card.left))


def run_step(card: Card, step: str, command: Sequence[str]) -> None:
    """Run a step by a command until it ends well; what hangs is noted as an error."""
    for _ in range(TRIES):
        card.touch("")
        process = subprocess.Popen([*command, step])
        while process.poll() is None:
            time.sleep(POLL)
            doing = card.work / "doing"
            if card.left < -PATIENCE or time.time() - doing.stat().st_mtime > PATIENCE:
                process.kill()
                process.wait()
                card.results.pop(step, None)
                card.note(step, doing.read_text(encoding="utf-8"), {"error": "it hangs"})
        if process.returncode == 0 or card.left <= 0:
            break
    card.results.pop(step, None)
