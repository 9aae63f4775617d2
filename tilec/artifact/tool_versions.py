"""Versions of the programs that make artifacts, by which it is known whether they would be made the same again."""

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

from tilec.artifact.cache_folder import cache_folder
from tilec.artifact.digest import digest_object
from tilec.artifact.store import put_text

_PACKAGES = ("tilec", "apache-tvm", "apache-tvm-ffi", "apache-tvm-ffi-orcjit", "numpy", "onnx", "onnxruntime")

_DIGITS = 12
"""Of a sha256."""

SETTLED = 2.0
"""Seconds after which a file's times tell that it was not written again: coarser clocks are not in use."""

State = tuple[str, int, int, int, int]
"""A file's name, number, bytes and times of change: where these are as they were, so is what it holds."""


@cache
def tools() -> dict[str, str]:
    """Package -> version, empty for one that is not installed; tilec's with a digest of its files, which change between
    versions in a checkout."""
    found = {name: _version(name) for name in _PACKAGES}
    return {**found, "tilec": " ".join((found["tilec"], *_sources(Path(__file__).parents[1])))}


def source_version(*folders: str) -> str:
    """What decides the work of these folders of the package: its version, and the digest of their files."""
    root = Path(__file__).parents[1]
    digest = sha256()
    for folder in folders:
        for name, *_ in sorted(_states(str(root / folder), f"{folder}/")):
            digest.update(f"{name}\n".encode())
            digest.update((root / name).read_bytes())
    return f"{_version('tilec')} {digest.hexdigest()}"


def _version(name: str) -> str:
    """The version of a package by the folder that tells of it: reading that takes ten times as long."""
    named = re.compile(rf"{re.sub('[-_.]+', '[-_.]+', name)}-([^-]+)(-py[^-]+)?\.(dist|egg)-info", re.IGNORECASE)
    for folder in sys.path:
        for entry in _listed(folder):
            known = named.fullmatch(entry)
            if known is not None:
                return known[1]
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return ""


@cache
def _listed(folder: str) -> tuple[str, ...]:
    try:
        return tuple(entry for entry in os.listdir(folder or os.curdir) if entry.endswith("-info"))
    except OSError:
        return ()


def _sources(root: Path) -> tuple[str, ...]:
    """The digest of a package's files, the same wherever they lie; none for a package in an archive. It is remembered
    in the user's cache while the files stay as they are."""
    states = sorted(_states(str(root), ""))
    if not states:
        return ()
    now = digest_object([list(state) for state in states])
    note = cache_folder() / "digests" / f"sources-{digest_object(str(root))[:32]}"
    with suppress(OSError, ValueError):
        seen, known = note.read_text(encoding="ascii").split()
        if seen == now and len(known) == _DIGITS:
            return (known,)
    digest = sha256()
    for name, *_ in states:
        digest.update(f"{name}\n".encode())
        digest.update((root / name).read_bytes())
    found = digest.hexdigest()[:_DIGITS]
    times = (each for state in states for each in state[3:])
    if min(abs(time.time() - each / 1e9) for each in times) > SETTLED:  # a clock may have been set back
        with suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            put_text(note, f"{now} {found}")
    return (found,)


def _states(folder: str, name: str) -> Iterator[State]:
    """The states of a package's files in a folder, whose name within the package is given; files that cannot be seen
    are none."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _states(entry.path, f"{name}{entry.name}/")
            elif entry.name.endswith((".py", ".ll")):
                state = entry.stat()
                yield f"{name}{entry.name}", state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
