"""Ctrl-C at random moments of each stage: exit code 130, one line, no traceback, no process left, and the next run
works."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress

from tests.faults.kills import BENCH
from tests.faults.world import COMPILE, World, ended, problems

LAST = "error: interrupted"
BOOT = 0.3
"""Seconds after which Python has started and tilec answers for interrupts."""
STAGES = ("import", "schedule", "codegen", "verify", "bench")


def at_random(world: World, count: int, seed: int) -> Iterator[str]:
    """Interrupt `count` commands, each in the next of the stages; yields problems."""
    draw = random.Random(seed)
    world.write_model(0)
    seconds: dict[str, float] = {}
    for stage in STAGES:
        begin = time.monotonic()
        ready = world.run(*_command(stage))
        assert ready.code == 0, ready.problem
        seconds[stage] = time.monotonic() - begin
    for number in range(count):
        stage = STAGES[number % len(STAGES)]
        _undo(world, stage)
        moment = max(BOOT, draw.uniform(0.05, 1.0) * seconds[stage])
        yield from (f"{stage} interrupted after {moment:.2f} s: {each}" for each in _interrupted(world, stage, moment))


def _interrupted(world: World, stage: str, moment: float) -> Iterator[str]:
    process = world.start(*_command(stage))
    with suppress(subprocess.TimeoutExpired):
        process.wait(moment)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    done = ended(process)
    if done.code and (done.code != 130 or "Traceback" in done.err or done.err.splitlines()[-1:] != [LAST]):
        yield done.problem
    yield from (f"process {each} is left" for each in world.orphans())
    yield from problems(world.build, (0,))
    yield from (f"{each} is left" for each in world.leftovers())
    again = world.run(*_command(stage))
    if again.code:
        yield f"the next run fails: {again.problem}"


def _command(stage: str) -> tuple[str, ...]:
    return BENCH if stage == "bench" else (*COMPILE, "--to", stage)


def _undo(world: World, stage: str) -> None:
    """Let the stage have its work to do."""
    for name in {"import": ["1-*"], "schedule": ["2-*"], "codegen": ["3-*", "*.a"], "verify": ["4-*"]}.get(stage, []):
        for path in world.build.glob(name):
            path.unlink()
    if stage == "codegen":
        shutil.rmtree(world.cache / "tilec" / "objects", ignore_errors=True)
