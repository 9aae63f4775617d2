"""Several processes that compile one model into one folder, and through one cache, at once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import numpy as np

from tests.faults.world import COMPILE, SESSION, World, ended, is_of, problems


def in_one_folder(world: World, processes: int) -> Iterator[str]:
    """Compile into one folder with `processes` commands at once; yields problems."""
    shutil.rmtree(world.build, ignore_errors=True)
    world.write_model(0)
    for number, done in enumerate([ended(each) for each in [world.start(*COMPILE) for _ in range(processes)]]):
        if done.code:
            yield f"{processes} on one folder, number {number}: {done.problem}"
    yield from problems(world.build, (0,))
    again = world.compile()
    if again.code or "done" in again.err:
        yield f"{processes} on one folder, once more: {again.problem}"


def in_one_cache(world: World, processes: int) -> Iterator[str]:
    """Open a session of one model in `processes` processes at once; yields problems."""
    for name in ("sessions", "models", "objects", "digests", "weights"):
        shutil.rmtree(world.cache / "tilec" / name, ignore_errors=True)
    world.write_model(0)
    names = [f"y{number}.npy" for number in range(processes)]
    started = [world.start("model.onnx", name, program=SESSION) for name in names]
    for name, done in zip(names, [ended(each) for each in started], strict=True):
        if done.code or not is_of(np.load(world.root / name), 0):
            yield f"{processes} through one cache: {done.problem}"
    if len([path for path in (world.cache / "tilec" / "sessions").iterdir() if path.is_dir()]) != 1:
        yield f"{processes} through one cache: more than one compiled model"
