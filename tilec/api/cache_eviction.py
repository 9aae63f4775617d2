"""Keeps the cache small: equal weights are stored once, and what was not used for longest goes when it is too large."""

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tilec.api.cache import LIMIT_VARIABLE, Cache
from tilec.errors import ConfigError

LIMIT = "20GiB"
"""The most that compiled models and models given as bytes take together, unless the variable says otherwise."""

_WORTH = 1 << 16
"""Bytes from which a file is worth sharing."""


def share(folder: Path, weights: list[Mapping[str, Any]], cache: Cache) -> None:
    """Let the weights of a compiled model be the same files as those of others that have the same bytes.

    One model for many sizes mostly has the same packed weights: on disk, and in memory, they are there once.
    Where there are no hard links nothing happens.
    """
    for each in weights:
        here, kept = folder / each["file"], cache.root / "weights" / each["sha256"]
        if each["bytes"] < _WORTH or here.is_symlink():
            continue
        with suppress(OSError):
            kept.parent.mkdir(parents=True, exist_ok=True)
            if kept.is_file() and kept.stat().st_size == each["bytes"]:
                aside = here.with_name(f"{here.name}.shared")
                os.link(kept, aside)
                os.replace(aside, here)
            else:
                kept.unlink(missing_ok=True)
                os.link(here, kept)


def used(folder: Path) -> None:
    """Remember that a folder of the cache was used now."""
    with suppress(OSError):
        os.utime(folder)


def prune(cache: Cache, keep: Collection[Path]) -> None:
    """Remove what was used least recently until the rest fits; the folders `keep` stay.

    A model that another process has loaded stays in its memory. Raises ConfigError for a wrong limit.
    """
    limit = limit_bytes()
    files = {folder: _files(folder) for folder in sorted(_counted(cache), key=_last_used)}
    for folder in list(files):
        if _total(files.values()) <= limit:
            break
        if folder not in keep:
            remove(folder)
            del files[folder]
    for kept in cache.root.glob("weights/*"):
        with suppress(OSError):
            if kept.stat().st_nlink == 1:
                kept.unlink()


def room(cache: Cache) -> int:
    """Bytes until something would have to go. Raises ConfigError for a wrong limit."""
    return limit_bytes() - _total(_files(folder) for folder in _counted(cache))


def folder_bytes(folder: Path) -> int:
    """Bytes of a folder of the cache."""
    return sum(_files(folder).values())


def limit_bytes() -> int:
    """The limit in bytes. Raises ConfigError when the variable is no size."""
    from tilec.spec.units import BYTES

    text = os.environ.get(LIMIT_VARIABLE, LIMIT)
    try:
        return BYTES.parse(text)
    except ValueError as error:
        raise ConfigError(str(error), LIMIT_VARIABLE) from error


def remove(folder: Path) -> None:
    """Take a folder out of the cache in one step. Raises OSError when it cannot be moved."""
    import shutil

    aside = folder.with_suffix(f".{os.getpid()}.old")
    try:
        os.replace(folder, aside)
    except FileNotFoundError:
        return
    shutil.rmtree(aside, ignore_errors=True)


def _counted(cache: Cache) -> list[Path]:
    """The folders that the limit is about."""
    return [path for name in ("sessions", "models") for path in cache.root.glob(f"{name}/*") if _is_whole(path)]


def _total(files: Iterable[Mapping[int, int]]) -> int:
    """Bytes of files together; one that several folders share counts once."""
    return sum(dict(pair for each in files for pair in each.items()).values())


def _is_whole(path: Path) -> bool:
    return path.is_dir() and not path.suffix


def _last_used(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def _files(folder: Path) -> dict[int, int]:
    """Number of each file -> its bytes; links to files elsewhere take nothing."""
    found = {}
    for path in folder.rglob("*"):
        with suppress(OSError):
            state = path.lstat()
            found[state.st_ino] = state.st_size
    return found
