"""Contents of the user's cache: every entry with kind, size and age; files that are not tilec's are ignored."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tilec.errors import UsageError, did_you_mean

KINDS: Mapping[str, str] = {
    "sessions": "models compiled for InferenceSession and `tilec run`",
    "weights": "packed weights, shared by the compiled models that have the same",
    "models": "what is known of models: headers, sizes of calls, and models given as bytes",
    "structures": "which compiled model takes other weights, by structure",
    "graphs": "graphs of PyTorch that were compiled, by their code",
    "queue": "models that wait for the compiler in the background, and those that failed there",
    "digests": "sha256 of model files, by place, size and times",
    "objects": "object files of kernels, by their source and tools",
    "searches": "what searches found of groups, by target and version of the scheduler",
    "bounds": "curves of `tilec bounds`, by shape",
    "zoo": "models of the zoo that `tilec bench` exported and compiled, by version",
    "host": "this machine as it was measured",
    "leftovers": "what ended processes left half-made, a day old or more",
}
"""Map from kind of entry to its description."""

_NAMES: Mapping[str, tuple[str, str]] = {
    "sessions": ("sessions", r"[0-9a-f]{32}"),
    "weights": ("weights", r"[0-9a-f]{64}"),
    "models": ("models", r"[0-9a-f]{32}"),
    "structures": ("structures", r"[0-9a-f]{32}"),
    "graphs": ("graphs", r"[0-9a-f]{32}"),
    "queue": ("queue/*", r"(\d|failed)-[0-9a-f]{32}\.json"),
    "digests": ("digests", r"[0-9a-f]{32}"),
    "objects": ("objects", r"[\w.-]+-[0-9a-f]{16}\.o"),
    "searches": ("searches", r"[0-9a-f]{24}-[0-9a-f]{16}\.json"),
    "bounds": ("bounds", r"[0-9a-f]{32}\.json"),
    "zoo": ("zoo", r"[0-9a-f]{12}"),
    "host": ("", r"host-[0-9a-f]{16}\.yaml"),
}
"""Map from kind to its folder, or pattern of folders, and the pattern of its entries' names; other files are not
tilec's."""

_HALF_MADE = re.compile(r"[0-9a-f]{32}\.(tmp|\d+\.old)|\..+\.[0-9a-f]{8}\.tmp|\..+\.\d+\.tmp")

_FOLDERS = frozenset({"sessions", "models", "zoo"})
"""Kinds whose entries are folders."""

_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the cache. `used` is its last use, or its writing where uses are not recorded, in seconds since the
    epoch; `files` maps file-system number to bytes, for equal weights are one file."""

    kind: str
    path: Path
    used: float
    files: Mapping[int, int]

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return sum(self.files.values())

    def age(self, now: float) -> float:
        """Seconds since its last use."""
        return max(0.0, now - self.used)


def require_kinds(names: Iterable[str]) -> tuple[str, ...]:
    """The named kinds, or all without names. Raises UsageError for an unknown name."""
    kinds = tuple(names)
    for name in kinds:
        if name not in KINDS:
            near = did_you_mean(name, KINDS)
            hint = f"Did you mean {near!r}?" if near else f"Known: {', '.join(KINDS)}."
            raise UsageError(f"nothing of kind {name!r} is kept", "--kind", hint)
    return kinds or tuple(KINDS)


def entries(root: Path, kinds: Collection[str], now: float | None = None) -> Iterator[Entry]:
    """All entries of these kinds in the cache at `root`, in the order of `KINDS`; links are never followed."""
    moment = time.time() if now is None else now
    for kind in (kind for kind in KINDS if kind in kinds):
        yield from _left(root, moment) if kind == "leftovers" else _whole(root, kind)


def total(listed: Iterable[Entry]) -> int:
    """Bytes of entries together; a file shared by several counts once."""
    return sum({number: size for entry in listed for number, size in entry.files.items()}.values())


def without_shared(chosen: Sequence[Entry], sessions: Iterable[Entry]) -> list[Entry]:
    """The chosen entries whose removal frees space: weights stay while a session that is not chosen uses them."""
    going = {entry.path for entry in chosen}
    used = {number for entry in sessions if entry.path not in going for number in entry.files}
    return [entry for entry in chosen if entry.kind != "weights" or not used & entry.files.keys()]


def remove(entry: Entry) -> bool:
    """Remove an entry, a folder in one atomic step; returns whether it is gone."""
    try:
        if not entry.path.is_dir():
            entry.path.unlink(missing_ok=True)
            return True
        aside = entry.path.with_name(f"{entry.path.name.partition('.')[0]}.{os.getpid()}.old")
        os.replace(entry.path, aside)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    shutil.rmtree(aside, ignore_errors=True)
    return not aside.exists()


def _whole(root: Path, kind: str) -> Iterator[Entry]:
    folder, pattern = _NAMES[kind]
    for each in _listed(root, folder):
        is_folder = each.is_dir(follow_symlinks=False)
        if re.fullmatch(pattern, each.name) and is_folder == (kind in _FOLDERS) and not each.is_symlink():
            yield from _entry(kind, each)


def _left(root: Path, now: float) -> Iterator[Entry]:
    for folder in sorted({folder for folder, _ in _NAMES.values()}):
        for each in _listed(root, folder):
            if _HALF_MADE.fullmatch(each.name) and not each.is_symlink():
                yield from (entry for entry in _entry("leftovers", each) if entry.age(now) >= _DAY)


def _listed(root: Path, pattern: str) -> Iterator[os.DirEntry[str]]:
    """What is in the folder, or the folders, of a kind."""
    for folder in sorted(root.glob(pattern)) if "*" in pattern else (root / pattern,):
        if not folder.is_symlink():
            yield from _items(folder)


def _items(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            return sorted(listing, key=lambda each: each.name)
    except OSError:
        return []


def _entry(kind: str, item: os.DirEntry[str]) -> Iterator[Entry]:
    """The entry, unless another process removes it meanwhile."""
    with suppress(FileNotFoundError):
        state = item.stat(follow_symlinks=False)
        path = Path(item.path)
        files = _files(path) if item.is_dir(follow_symlinks=False) else {state.st_ino: state.st_size}
        yield Entry(kind, path, state.st_mtime, files)


def _files(folder: Path) -> dict[int, int]:
    sizes = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                state = os.lstat(os.path.join(place, name))
                sizes[state.st_ino] = state.st_size
    return sizes
