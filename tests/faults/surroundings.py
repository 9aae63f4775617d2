"""The compiler in the background while its surroundings change: disks, files, users, versions, clocks, other programs.

Whatever happens, programs get right results and end well, nothing is half-written, no process is left behind, and what
was asked for is compiled once that is possible again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from tests.faults.disks import bound_read_only, mounted
from tests.faults.world import SOURCES, Ended, World, ended, is_of, model_bytes, python_for_all
from tilec.background import Queue
from tilec.spec.host import read_host
from tilec.spec.probe import probed_text

PROGRAM = """
import os, sys, tempfile, time, numpy as np, tilec
model, output, seconds, *how = sys.argv[1:]
feed = np.linspace(-1, 1, 4 * 128, dtype=np.float32).reshape(4, 128)
if "copied" in how:
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(open(model, "rb").read())
        file.flush()
        session = tilec.InferenceSession(file.name)
else:
    session = tilec.InferenceSession(model)
first = session.run(None, {"x": feed})[0]
print("open", flush=True)
end = time.monotonic() + float(seconds)
while session._model.fixed is None and time.monotonic() < end:
    assert np.allclose(session.run(None, {"x": feed})[0], first, rtol=1e-4, atol=1e-3)
    time.sleep(0.1)
np.save(output, session.run(None, {"x": feed})[0])
print("compiled" if session._model.fixed is not None else "served")
"""
"""A session that is called until its model is compiled, for some seconds at most; `copied`: of a file that is gone when
it is open."""

LONG = 240.0
"""Seconds in which one small model is compiled, on a busy machine, too."""

OTHER_USER = 65534

SMALL = ("4k", "16k", "64k", "192k", "384k", "1m")
"""Sizes of disks on which a cache with one compiled model has no room from one moment on."""


class Programs:
    """Programs on the model of a world, and the queue that they share."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cache = world.cache / "tilec"
        self.queue = Queue(self.cache)
        self.version = 0
        world.write_model(0)

    def start(self, *how: str, seconds: float = LONG, output: str = "y.npy", **more: str) -> subprocess.Popen[str]:
        """Start one."""
        more = {"TILEC_WHILE_COMPILING": "fallback", **more}
        return self.world.start("model.onnx", output, str(seconds), *how, program=PROGRAM, **more)

    def opened(self, *how: str, **options: float) -> subprocess.Popen[str]:
        """One whose session is open; its model is asked for at about this time."""
        program = self.start(*how, **options)
        assert program.stdout is not None
        program.stdout.readline()
        return program

    def problems(
        self, done: Ended, said: tuple[str, ...], version: int | None = None, output: str = "y.npy"
    ) -> Iterator[str]:
        """What is wrong with one that ended and was to say one of these words."""
        words = done.out.replace("open", "").strip()
        if done.code or words not in said or "Traceback" in done.err:
            yield f"a program says {words!r}, not {' or '.join(said)}: {done.problem}"
        elif not is_of(np.load(self.world.root / output), self.version if version is None else version):
            yield "a program computes another model"

    def compiled(self, *how: str, **more: str) -> Iterator[str]:
        """What is wrong with a program now that nothing is in the way; its model gets compiled."""
        yield from self.problems(ended(self.start(*how, **more)), ("compiled",))

    def served(self, seconds: float = 1.0, **more: str) -> Iterator[str]:
        """What is wrong with a short program."""
        yield from self.problems(ended(self.start(seconds=seconds, **more)), ("compiled", "served"))

    def settled(self) -> Iterator[str]:
        """Waits until nothing is queued, and all processes have ended; what is wrong then."""
        end = time.monotonic() + LONG
        while (self.queue.waiting() or list(self.world.living())) and time.monotonic() < end:
            time.sleep(0.05)
        yield from (f"{each.what} is left in the queue" for each in self.queue.waiting())
        yield from (f"process {each} is left" for each in self.world.orphans())
        yield from (f"{each} is left" for each in self.world.leftovers())
        yield from self.halves()

    def halves(self) -> Iterator[str]:
        """Compiled models that are not whole."""
        for folder in self.cache.glob("sessions/*"):
            if folder.is_dir() and not folder.suffix and not (folder / "links.json").is_file():
                yield f"{folder.name} is half a compiled model"

    def forget(self) -> None:
        """Forget compiled models and failures, and keep the measurement of this machine."""
        self.queue.stop()
        for folder in ("sessions", "structures", "objects", "searches", "models", "queue"):
            shutil.rmtree(self.cache / folder, ignore_errors=True)


Case = Callable[[Programs], Iterator[str]]


def full_disk(programs: Programs) -> Iterator[str]:
    """The cache's disk is full at some moment; later there is room."""
    for size in SMALL:
        with mounted(programs.cache, f"size={size}") as disk:
            _measured(disk)
            yield from (f"disk of {size}: {each}" for each in programs.served(12.0))
            yield from (f"disk of {size}: {each}" for each in programs.halves())
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
            _measured(disk)
            for failed in programs.queue.folder.glob("failed-*"):
                failed.unlink()
            yield from (f"disk of {size}, then larger: {each}" for each in programs.compiled())
            yield from (f"disk of {size}, then larger: {each}" for each in programs.settled())


def read_only(programs: Programs) -> Iterator[str]:
    """Nothing can be written into the cache: before a model is compiled, afterwards, and from some moment on."""
    with bound_read_only(programs.cache):
        yield from (f"empty: {each}" for each in programs.compiled())
    yield from programs.compiled()
    with bound_read_only(programs.cache):
        yield from (f"filled: {each}" for each in programs.compiled())
    yield from programs.settled()
    python = python_for_all()
    for moment in (0.0, 1.0, 3.0) if python else ():  # root may write whatever rights are taken away
        programs.forget()
        _owned(programs.world.root, OTHER_USER)
        programs.world.user, programs.world.python = OTHER_USER, python or ""
        program = programs.opened(seconds=moment + 10.0)
        time.sleep(moment)
        _allowed(programs.cache, 0o555)
        yield from (f"after {moment} s: {each}" for each in programs.problems(ended(program), ("compiled", "served")))
        yield from (f"after {moment} s: {each}" for each in programs.halves())
        _allowed(programs.cache, 0o755)
        for failed in programs.cache.glob("queue/*/failed-*"):
            failed.unlink()
        yield from (f"after {moment} s, then writable: {each}" for each in programs.compiled())
        yield from (f"after {moment} s: {each}" for each in programs.settled())
    programs.world.user = None


def removed_cache(programs: Programs) -> Iterator[str]:
    """The cache goes while its compiler works."""
    for moment in (0.0, 0.5, 1.5, 3.0):
        program = programs.opened(seconds=8.0)
        time.sleep(moment)
        shutil.rmtree(programs.cache, ignore_errors=True)
        _measured(programs.cache)
        yield from (f"after {moment} s: {each}" for each in programs.problems(ended(program), ("compiled", "served")))
        yield from (f"after {moment} s, once more: {each}" for each in programs.compiled())
        yield from (f"after {moment} s: {each}" for each in programs.settled())


def other_model(programs: Programs) -> Iterator[str]:
    """The model goes, or becomes another one in its place or in its file, before it is compiled."""
    for change in ("gone", "replaced", "written over"):
        for moment in (0.0, 0.6, 2.0):
            programs.forget()
            programs.world.write_model(programs.version)
            program, before = programs.opened(seconds=8.0), programs.version
            time.sleep(moment)
            programs.version += 1
            if change == "gone":
                programs.world.model.unlink()
            elif change == "replaced":
                programs.world.write_model(programs.version)
            else:
                programs.world.model.write_bytes(model_bytes(programs.version))
            case = f"{change} after {moment} s"
            yield from (f"{case}: {each}" for each in programs.problems(ended(program), ("compiled", "served"), before))
            yield from (f"{case}: {each.message}" for each in programs.queue.failures())
            if change == "gone":
                programs.world.write_model(programs.version)
            yield from (f"{case}, next: {each}" for each in programs.compiled())
            yield from (f"{case}: {each}" for each in programs.settled())


def temporary_file(programs: Programs) -> Iterator[str]:
    """The model's file is gone when its session is open, as it is for models that programs make: compiled all the same,
    for this program where it lives long enough, and for the next."""
    yield from (f"long: {each}" for each in programs.compiled("copied"))
    yield from programs.settled()
    programs.forget()
    yield from (f"short: {each}" for each in programs.problems(ended(programs.start("copied", seconds=0)), ("served",)))
    yield from programs.settled()
    if not list(programs.cache.glob("sessions/*/links.json")):
        yield "what a short program asked for is not compiled"
    yield from (f"next: {each}" for each in programs.compiled("copied"))
    yield from programs.settled()


def two_users(programs: Programs) -> Iterator[str]:
    """Another user has the same cache, may write there or not, and comes at the same time."""
    world, python = programs.world, python_for_all()
    world.python = python or world.python
    for mask in (0o022, 0o000) if python else ():
        programs.forget()
        before = os.umask(mask)
        try:
            _owned(world.root, 0)
            _allowed(world.root, 0o777 & ~mask)
            for name in ("home", "tmp", "out"):
                (world.root / name).mkdir(exist_ok=True)
                (world.root / name).chmod(0o777)
            started = []
            for user in (None, OTHER_USER, None, OTHER_USER):
                world.user = user
                started.append(programs.start(output=f"out/{len(started)}.npy"))
            world.user = None
            for number, done in enumerate([ended(each) for each in started]):
                found = programs.problems(done, ("compiled",), output=f"out/{number}.npy")
                yield from (f"mask {mask:o}, program {number}: {each}" for each in found)
            yield from (f"mask {mask:o}: {each}" for each in programs.settled())
        finally:
            os.umask(before)
            world.user = None


def two_versions(programs: Programs) -> Iterator[str]:
    """Two installations, of which one has another scheduler, and orders of another form."""
    other = programs.world.root / "other"
    for name in ("tilec", "devices", "recipes", "types"):
        shutil.copytree(SOURCES / name, other / name, ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "tilec" / "scheduler" / "schedule.py").open("a") as file:
        file.write("\nANOTHER = 1\n")
    order = other / "tilec" / "background" / "order.py"
    order.write_text(order.read_text().replace("    begun: int = 0\n", "    begun: int = 0\n    weight: int = 1\n"))
    path = programs.world.environment()["PYTHONPATH"].replace(str(SOURCES), str(other))
    mine, others = programs.start(), programs.start(output="z.npy", PYTHONPATH=path)
    yield from (f"this version: {each}" for each in programs.problems(ended(mine), ("compiled",)))
    yield from (f"the other: {each}" for each in programs.problems(ended(others), ("compiled",), output="z.npy"))
    yield from programs.settled()
    found = [each for each in programs.cache.glob("sessions/*") if each.is_dir()]
    if len(found) != 2:
        yield f"{len(found)} compiled models of two versions"


def one_processor(programs: Programs) -> Iterator[str]:
    """Everything has one processor."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        yield from programs.compiled()
        yield from programs.settled()
    finally:
        os.sched_setaffinity(0, cpus)


def long_queue(programs: Programs) -> Iterator[str]:
    """Hundreds wait; the compiler takes them one after the other, and a program gets what it waits for."""
    folder = programs.world.root / "many"
    folder.mkdir()
    script = f"""
from pathlib import Path
from tilec.background import Order, Queue, start
queue = Queue(Path({str(programs.cache)!r}))
for number in range(400):
    made = f"{folder}/{{number}}"
    queue.add(Order(f"{{number:04d}}" * 16, f"{{number}}.onnx", ("/bin/sh", "-c", "mkdir " + made), "", made, "/"))
start(queue)
"""
    done = programs.world.run(program=script)
    if done.code:
        yield done.problem
    yield from programs.compiled()
    yield from programs.settled()
    if (count := len(list(folder.iterdir()))) != 400:
        yield f"{count} of 400 are made"


def clocks(programs: Programs) -> Iterator[str]:
    """The clock jumps by a day, either way, between two programs, in one, and against the files' times."""
    clock = programs.world.root / "clock"
    for seconds in (86400, -86400):
        programs.forget()
        clock.write_text("0")
        program = programs.opened(TILEC_CLOCK=str(clock))
        clock.write_text(str(seconds))
        yield from (f"{seconds} s: {each}" for each in programs.problems(ended(program), ("compiled",)))
        yield from (f"{seconds} s: {each}" for each in programs.settled())
        programs.forget()
        os.utime(programs.world.model, (time.time() + seconds, time.time() + seconds))
        yield from (f"file of {seconds} s: {each}" for each in programs.compiled(TILEC_CLOCK=""))
        yield from (f"file of {seconds} s: {each}" for each in programs.settled())
        begin = time.monotonic()
        yield from (f"file of {seconds} s, again: {each}" for each in programs.served(0.0))
        if time.monotonic() - begin > LONG / 2:
            yield f"a program waited {time.monotonic() - begin:.0f} s"


def at_once(programs: Programs, count: int = 20) -> Iterator[str]:
    """As many programs open the model at once."""
    started = [programs.start(output=f"y{number}.npy") for number in range(count)]
    for number, done in enumerate([ended(each) for each in started]):
        yield from programs.problems(done, ("compiled",), output=f"y{number}.npy")
    yield from programs.settled()
    found = [each for each in programs.cache.glob("sessions/*") if each.is_dir()]
    if len(found) != 1:
        yield f"{len(found)} compiled models of one"


CASES: dict[str, Case] = {
    "full-disk": full_disk,
    "unwritable": read_only,
    "removed-cache": removed_cache,
    "other-model": other_model,
    "temporary-file": temporary_file,
    "two-users": two_users,
    "two-versions": two_versions,
    "one-processor": one_processor,
    "long-queue": long_queue,
    "clocks": clocks,
    "at-once": at_once,
}
AS_ROOT = ("full-disk", "unwritable", "two-users")


def run(world: World, name: str) -> Iterator[str]:
    """Run a case; yields problems."""
    programs = Programs(world)
    try:
        yield from CASES[name](programs)
    finally:
        programs.queue.stop()


def _measured(folder: Path) -> None:
    """Put the measurement of this machine into a cache, if there is room."""
    folder.mkdir(exist_ok=True)
    with suppress(OSError):
        (folder / f"host-{read_host().key}.yaml").write_text(probed_text())


def _owned(folder: Path, user: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


def _allowed(folder: Path, mode: int) -> None:
    """Give folders a mode, and files what of it is no execution."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(mode if path.is_dir() else mode & 0o666)
