"""kill -9 of the compiler in the background, of what it runs, and of the program, at random moments: calls go on, and
the model is compiled by the next compiler."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from tests.faults.world import Ended, World, ended, is_of
from tilec.background import Queue

KINDS = ("compiler", "worker", "compiler and worker", "all")

SERVING = """
import sys, time, numpy as np, tilec
feed = np.linspace(-1, 1, 4 * 128, dtype=np.float32).reshape(4, 128)
session = tilec.InferenceSession(sys.argv[1])
end, results = time.monotonic() + float(sys.argv[3]), []
while session._model.fixed is None and time.monotonic() < end:
    results.append(session.run(None, {"x": feed})[0])
    time.sleep(0.01)
results.append(session.run(None, {"x": feed})[0])
assert all(np.allclose(each, results[0], rtol=1e-4, atol=1e-3) for each in results)
np.save(sys.argv[2], results[-1])
print("compiled" if session._model.fixed is not None else "served")
"""
"""A session that is called until its model is compiled, for some seconds at most."""

LONG = 240.0


def at_random(world: World, count: int, seed: int) -> Iterator[str]:
    """Kill `count` times; yields problems."""
    draw, queue = random.Random(seed), Queue(world.cache / "tilec")
    world.write_model(0)
    begin = time.monotonic()
    yield from _of(_served(world), 0, world, "compiled")
    seconds = time.monotonic() - begin
    for number in range(1, count + 1):
        kind = KINDS[number % len(KINDS)]
        for name in ("sessions", "structures", "objects"):
            shutil.rmtree(world.cache / "tilec" / name, ignore_errors=True)
        world.write_model(number)
        moment = draw.uniform(0.05, 1.0) * seconds
        yield from (f"{kind} killed after {moment:.2f} s: {each}" for each in _killed(world, queue, number, moment))
    queue.stop()
    yield from (f"process {each} is left" for each in world.orphans())


def _killed(world: World, queue: Queue, number: int, moment: float) -> Iterator[str]:
    kind = KINDS[number % len(KINDS)]
    program = world.start("model.onnx", "y.npy", str(LONG), program=SERVING, TILEC_WHILE_COMPILING="fallback")
    time.sleep(moment)
    for process, command in world.living():
        is_worker, is_compiler = "background_worker" in command, "tilec.background " in command
        if kind == "all" or (is_worker and "worker" in kind) or (is_compiler and "compiler" in kind):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    if kind == "all":
        program.communicate()
    elif kind == "worker":
        yield from _with_worker_killed(world, queue, number, program)
    else:
        yield from _of(ended(program), number, world, "compiled", "the program")
    yield from _of(_served(world), number, world, "compiled", "the next program")
    end = time.monotonic() + LONG
    while queue.waiting() and time.monotonic() < end:  # an order goes a moment after its model is there
        time.sleep(0.02)
    left = [each.what for each in queue.waiting()] + [each.message for each in queue.failures()]
    if left:
        yield f"{left} are left in the queue"


def _with_worker_killed(world: World, queue: Queue, number: int, program: subprocess.Popen[str]) -> Iterator[str]:
    """What was killed alone may have been too large for the machine: it is remembered."""
    while program.poll() is None and not queue.failures():
        time.sleep(0.05)
    failures = queue.failures()
    if failures and any("SIGKILL" not in each.message for each in failures):
        yield f"{failures}"
    if failures:
        program.kill()
        program.communicate()
        yield from _of(_served(world, 1.0), number, world, "served", "a program that knows of it")
        for path in queue.folder.glob("failed-*.json"):
            path.unlink()
    else:
        yield from _of(ended(program), number, world, "compiled", "the program")


def _served(world: World, seconds: float = LONG) -> Ended:
    return world.run("model.onnx", "y.npy", str(seconds), program=SERVING, TILEC_WHILE_COMPILING="fallback")


def _of(done: Ended, number: int, world: World, said: str, what: str = "a program") -> Iterator[str]:
    """What is wrong with a program on the version of the model."""
    if done.code or done.out.strip() != said:
        yield f"{what}: {done.out.strip()} {done.problem}"
    elif not is_of(np.load(Path(world.root / "y.npy")), number):
        yield f"{what} computes another model"
