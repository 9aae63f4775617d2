"""`python -m tests.faults [CASE...] [--kills N] [--interrupts N] [--processes N] [--every N] [--seed N]`.

Prints a line for each case, then what went wrong. Read-only and small disks are mounted, which only root may.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.faults import background, disks, interrupts, kills, surroundings, together
from tests.faults.world import World

Case = Callable[[World, argparse.Namespace], Iterator[str]]


def _together(world: World, asked: argparse.Namespace) -> Iterator[str]:
    for processes in sorted({2, 4, asked.processes}):
        yield from together.in_one_folder(world, processes)
        yield from together.in_one_cache(world, processes)


def _surroundings(name: str, world: World, _asked: argparse.Namespace) -> Iterator[str]:
    world.root.chmod(0o755)  # other users come there
    yield from surroundings.run(world, name)


CASES: dict[str, Case] = {
    "kills": lambda world, asked: kills.at_random(world, asked.kills, asked.seed),
    "kills-compile": lambda world, asked: kills.at_changes(world, "compile", asked.every),
    "kills-session": lambda world, asked: kills.at_changes(world, "session", asked.every),
    "background": lambda world, asked: background.at_random(world, asked.kills, asked.seed),
    "interrupts": lambda world, asked: interrupts.at_random(world, asked.interrupts, asked.seed),
    "together": _together,
    "full": lambda world, asked: disks.full_at_changes(world, asked.every),
    "small": lambda world, asked: disks.full_at_sizes(world),
    "read-only": lambda world, asked: disks.read_only(world),
    **{name: partial(_surroundings, name) for name in surroundings.CASES},
}
AS_ROOT = ("small", "read-only", *surroundings.AS_ROOT)


def main(arguments: list[str]) -> int:
    """Returns the number of problems."""
    parser = argparse.ArgumentParser("tests.faults")
    parser.add_argument("cases", nargs="*", default=[], choices=[*CASES, []])
    for name, default in (("kills", 200), ("interrupts", 50), ("processes", 8), ("every", 1), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args(arguments)
    found = 0
    for name in asked.cases or [case for case in CASES if os.geteuid() == 0 or case not in AS_ROOT]:
        with tempfile.TemporaryDirectory(prefix="tilec-faults-") as folder:
            world, begin, count = World(Path(folder)), time.monotonic(), 0
            for problem in CASES[name](world, asked):
                count += 1
                print(f"{name}: {problem}", flush=True)
            left = world.leftovers()
            print(
                f"{name}: {world.runs} commands, {count} problems, {len(left)} files left, "
                f"{time.monotonic() - begin:.0f} s",
                flush=True,
            )
            found += count
    return found


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
