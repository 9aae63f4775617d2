"""Check of the cache folder: write permission, size, free space."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tilec.report.cache_listing import KINDS, entries, total
from tilec.report.doctor.finding import Finding
from tilec.report.formatting import bytes_text

_LEAST_FREE = 1 << 30


def cache(root: Path, limit: int) -> Iterator[Finding]:
    """Findings about the folder `root`; `limit` is the limit of compiled models in bytes."""
    there = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
    if not _writable(there):
        fix = "Give write permission, or set XDG_CACHE_HOME to another folder."
        yield Finding("cache", "warning", f"{root} cannot be written: everything is compiled anew in each process", fix)
        return
    size = total(entries(root, KINDS))
    yield Finding("cache", "ok", f"{root}: {bytes_text(size)}, compiled models at most {bytes_text(limit)}")
    free = shutil.disk_usage(there).free
    if free < _LEAST_FREE:
        yield Finding("cache", "warning", f"{bytes_text(free)} free on its disk", "Free some space: tilec cache clear")


def _writable(folder: Path) -> bool:
    """Whether files can be created in a folder; permissions alone do not show it (read-only file systems)."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
