"""Full and read-only disks: a clear error with place and mend, its exit code, and what was there stays as it was."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.kills import BENCH
from tests.faults.world import SESSION, Ended, World, problems

SMALL = ("4k", "16k", "40k", "64k", "100k", "140k", "300k")
"""Sizes of disks on which a build, which takes some 200 KiB, has no room from one stage on."""


def full_at_changes(world: World, every: int, last: str = "verify") -> Iterator[str]:
    """Compile up to stage `last` over an earlier version on a disk that is full from change 1, 1 + `every`, ... on;
    yields problems."""
    world.write_model(0)
    ready = world.compile("--to", last)
    assert ready.code == 0, ready.problem
    number, version, complete = 1, 0, 0
    while True:
        version += 1
        world.write_model(version)
        counter = world.root / "counter"
        counter.unlink(missing_ok=True)
        done = world.compile("--to", last, TILEC_FAULT=f"full:{number}:{counter}:{world.root}")
        yield from (f"full from change {number}: {each}" for each in _of_full(done))
        yield from (f"full from change {number}: {each}" for each in problems(world.build, (complete, version)))
        complete = version if done.code == 0 else complete
        yield from (f"full from change {number}: {each} is left" for each in world.leftovers())
        if done.code == 0 and counter.stat().st_size < number:
            return
        number += every


def full_at_sizes(world: World) -> Iterator[str]:
    """Compile onto disks of several sizes; yields problems."""
    world.write_model(0)
    for size in SMALL:
        with mounted(world.root / "disk", f"size={size}") as disk:
            done = world.compile("-o", str(disk / "build"))
            yield from (f"disk of {size}: {each}" for each in _of_full(done))
            yield from (f"disk of {size}: {each}" for each in problems(disk / "build", (0,)))


def read_only(world: World) -> Iterator[str]:
    """Use home, cache and current folder that cannot be written; yields problems."""
    world.write_model(0)
    ready = world.compile()
    assert ready.code == 0, ready.problem
    with mounted(world.cache, "ro,size=4k"):
        done = world.compile("-o", "other.tilec", "--from", "import")
        yield from _of(done, 0, "read-only cache, compile")
        yield from _of(world.run("model.onnx", "y.npy", program=SESSION), 0, "read-only cache, session")
        yield from _of(world.run("doctor"), 0, "read-only cache, doctor")
    with mounted(world.root / "home", "ro,size=4k"):
        done = world.run("run", "model.onnx", XDG_CACHE_HOME="")
        yield from _of(done, 0, "read-only home, run")
    with bound_read_only(world.build):
        yield from _of(world.run("run", "model.tilec"), 0, "read-only build, run")
        yield from _of(world.run(*BENCH), 0, "read-only build, bench")
        world.write_model(1)
        yield from _of(world.compile(), 1, "read-only build, compile", "Read-only file system")
    yield from problems(world.build, (0,))


def _of_full(done: Ended) -> Iterator[str]:
    """What is wrong with the end of a command on a full disk."""
    if done.code == 0:
        return
    yield from _of(done, 1, "", "No space left on device")


def _of(done: Ended, code: int, case: str, text: str = "") -> Iterator[str]:
    """What is wrong with a command that is to end with this code and a message that has this text."""
    errors = [line for line in done.err.splitlines() if line.startswith("error:")]
    if done.code != code or "Traceback" in done.err or "bug in tilec" in done.err:
        yield f"{case} {done.problem}"
    elif text and (len(errors) != 1 or text not in done.err or "\n  " not in done.err):
        yield f"{case} without place or mend: {done.err.strip()[-300:]}"


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """An empty file system of its own in memory at a folder."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def bound_read_only(folder: Path) -> Iterator[None]:
    """A folder that not even root may write."""
    subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
