"""Right calls of every verb in odd surroundings: what they leave behind, and whether they say what is wrong."""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from hosts import TIMINGS

from cli.forked import Ended, called
from cli.odd_worlds import World, listing
from tests.faults.disks import bound_read_only, mounted
from tilec.spec import probe

OUTPUTS = ("-o", "--output")
SIZE = "64k"
"""Of a disk on which the copy of a folder has room, and what verbs write has not."""


def _measured() -> None:
    """Let a machine whose measurement is not kept be measured at no cost."""
    probe._timings = lambda _host: TIMINGS


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


def read_only(call: Sequence[str], world: World) -> Iterator[str]:
    """A folder that cannot be written."""
    with world.copied() as folder, bound_read_only(folder):
        yield from _written_or_told(called(call, folder))


def full(call: Sequence[str], world: World) -> Iterator[str]:
    """No file may have more than 1 KiB, as on a disk that is almost full."""
    with world.copied() as folder:
        before = listing(folder)
        ended = called(call, folder, before=_small_files)
        yield from _written_or_told(ended)
        yield from _left(before, listing(folder))


def small(call: Sequence[str], world: World) -> Iterator[str]:
    """What is written goes to a small disk of its own."""
    with world.copied() as folder, mounted(folder / "disk", f"size={SIZE}"):
        moved = [f"disk/{word}" if before in OUTPUTS else word for before, word in zip(("", *call), call, strict=False)]
        yield from _written_or_told(called(moved, folder))
        yield from _left({}, listing(folder / "disk"))


def closed(call: Sequence[str], world: World) -> Iterator[str]:
    """`| head -c 1`."""
    with world.copied() as folder:
        ended = called(call, folder, closed_after=1)
    if "Exception" in ended.err or "Broken" in ended.err:
        yield ended.err[-300:]


def homeless(call: Sequence[str], world: World) -> Iterator[str]:
    """No HOME that exists, and no cache."""
    with world.copied() as folder:
        yield from _same(called(call, folder, {"HOME": "/nonexistent/home", "XDG_CACHE_HOME": None}, _measured))


def plain(call: Sequence[str], world: World) -> Iterator[str]:
    """A terminal of 60 columns that has no colours."""
    with world.copied() as folder:
        ended = called(call, folder, {"TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "60"})
    yield from _same(ended)
    if "\x1b" in ended.out + ended.err:
        yield "colours"


def named(call: Sequence[str], world: World) -> Iterator[str]:
    """Paths with spaces, quotes, brackets and letters beyond ASCII; models in another folder."""
    with world.copied("a [b=1] 'ä'\" %s ☃") as folder:
        moved = [str(folder / word) if (folder / word.split("/")[0]).exists() and word else word for word in call]
        yield from _same(called(moved, folder.parent))


def again(call: Sequence[str], world: World) -> Iterator[str]:
    """The same call twice: the same answer, but for times."""
    with world.copied() as folder:
        once, twice = called(call, folder), called(call, folder)
    if once.code != twice.code:
        yield f"exit code {once.code}, then {twice.code}: {twice.err[-300:]}"
    yield from _same(twice)


def blocked(call: Sequence[str], world: World) -> Iterator[str]:
    """A folder stands where a file is to be written, a file where a folder is."""
    for option, word in pairwise(call):
        if option not in OUTPUTS:
            continue
        with world.copied() as folder:
            if Path(word).suffix in (".json", ".html", ".onnx"):
                (folder / word / "mine").mkdir(parents=True)
            else:
                (folder / word).write_text("mine")
            before = listing(folder)
            ended = called(call, folder)
            if not ended.code:
                yield f"exit code 0 though {word} is in the way"
            yield from _written_or_told(ended)
            yield from _left(before, listing(folder), only_new=False)


def interrupted(call: Sequence[str], world: World) -> Iterator[str]:
    """Ctrl-C after up to a second of work."""
    moment = random.Random(zlib.crc32(repr((call, world.kind)).encode())).uniform(0.001, 1)

    def soon() -> None:
        signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGINT))
        signal.setitimer(signal.ITIMER_PROF, moment)

    with world.copied() as folder:
        before = listing(folder)
        ended = called(call, folder, before=soon)
        if ended.code not in (0, 130) or (ended.code == 130 and not ended.err.endswith("error: interrupted\n")):
            yield f"after {moment:.3f} s exit code {ended.code}: {ended.err[-400:]}"
        yield from _left(before, listing(folder))


PLACES: dict[str, Callable[[Sequence[str], World], Iterator[str]]] = {
    each.__name__: each
    for each in (read_only, full, small, closed, homeless, plain, named, again, blocked, interrupted)
}
AS_ROOT = ("read_only", "small")


def _same(ended: Ended) -> Iterator[str]:
    """A call that is to succeed; `lint` may have findings."""
    if ended.code or "Traceback" in ended.err:
        yield f"exit code {ended.code}: {ended.err[-400:]}"


def _written_or_told(ended: Ended) -> Iterator[str]:
    """A call that succeeds, or says in one error what cannot be written and what helps."""
    if not ended.code:
        return
    told = re.search(r"^error: .*(cannot|names|stands|holds|is not|another).*\n  \S", ended.err, re.MULTILINE)
    if ended.code not in (1, 2) or not told or "Traceback" in ended.err or "bug in tilec" in ended.err:
        yield f"exit code {ended.code}: {ended.err[-400:]}"


def _left(before: dict[str, bytes | None], after: dict[str, bytes | None], only_new: bool = True) -> Iterator[str]:
    """Files that were being written, JSON that is cut off, and files that are lost."""
    for name, data in after.items():
        if name.endswith(".tmp") or (name.endswith(".json") and data is not None and not data.rstrip().endswith(b"}")):
            yield f"{name} is left"
    for name, data in before.items():
        if name not in after or (not only_new and after[name] != data):
            yield f"{name} was there, and is lost or another now"
