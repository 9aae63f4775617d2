"""kill -9 of whole process groups, at random moments and at every change of the file system."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from tests.faults.world import COMPILE, SESSION, Ended, World, is_of, problems

KINDS = ("compile", "compile", "session", "bench")
BENCH = ("bench", "model.tilec", "--processes", "1", "--rounds", "1")


class Victims:
    """Commands to be killed, over a build and a cache that hold an earlier version of the model."""

    def __init__(self, world: World, last: str = "codegen") -> None:
        self.last = last
        self.world = world
        self.version = 0
        world.write_model(0)
        begin = time.monotonic()
        first = world.compile("--to", last)
        assert first.code == 0, first.problem
        self.seconds = time.monotonic() - begin

    def start(self, kind: str, **more: str) -> subprocess.Popen[str]:
        """Start a command that has everything to do."""
        world = self.world
        if kind == "compile":
            self.version += 1
            world.write_model(self.version)
            return world.start(*COMPILE, "--to", self.last, **more)
        if kind == "session":
            shutil.rmtree(world.cache / "tilec" / "sessions", ignore_errors=True)
            return world.start("model.onnx", "y.npy", program=SESSION, **more)
        return world.start(*BENCH, **more)

    def again(self, kind: str) -> Iterator[str]:
        """What is wrong after a kill, and with the same command run once more."""
        world = self.world
        yield from (f"process {number} is left" for number in world.orphans())
        yield from problems(world.build, (max(self.version - 1, 0), self.version))
        if kind == "compile":
            yield from _failure(world.compile("--to", self.last))
        elif kind == "session":
            yield from _failure(world.run("model.onnx", "y.npy", program=SESSION))
            if not is_of(np.load(world.root / "y.npy"), self.version):
                yield "the session computes another model"
        else:
            yield from _failure(world.run(*BENCH))
        yield from problems(world.build, (self.version,))


def at_random(world: World, count: int, seed: int) -> Iterator[str]:
    """Kill `count` commands, each at a random moment; yields problems."""
    draw, victims = random.Random(seed), Victims(world)
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        moment = draw.uniform(0.1, 1.05) * victims.seconds
        process = victims.start(kind)
        with suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        kill(process)
        yield from (f"{kind} killed after {moment:.2f} s: {problem}" for problem in victims.again(kind))


def at_changes(world: World, kind: str, every: int, last: str = "codegen") -> Iterator[str]:
    """Kill a command, compile up to stage `last`, at its first change of a file under the world, at change 1 + `every`,
    and so on to the end; yields problems."""
    victims, number = Victims(world, last), 1
    while True:
        counter = world.root / "counter"
        counter.unlink(missing_ok=True)
        process = victims.start(kind, TILEC_FAULT=f"kill:{number}:{counter}:{world.root}")
        process.communicate()
        yield from (f"{kind} killed at change {number}: {problem}" for problem in victims.again(kind))
        if process.returncode == 0:
            return
        number += every


def kill(process: subprocess.Popen[str]) -> None:
    """kill -9 of the group of a process, which is awaited."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _failure(done: Ended) -> Iterator[str]:
    if done.code:
        yield f"the next run fails: {done.problem}"
