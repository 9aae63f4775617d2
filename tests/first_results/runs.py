"""What programs take, and caches in which nothing is compiled."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tilec.artifact import cache_folder

KNOWN = ("host-*.yaml", "digests/sources-*")


@dataclass(frozen=True)
class Took:
    """Seconds of a program, and processor seconds of it and of the children that it waited for."""

    wall: float
    cpu: float


def fresh_cache(cache: Path) -> Path:
    """A folder of caches that know this machine and this tilec, as far as the user's own one does."""
    known = cache / "tilec"
    (known / "digests").mkdir(parents=True)
    for pattern in KNOWN:
        for file in cache_folder().glob(pattern):
            shutil.copy(file, known / file.relative_to(cache_folder()))
    return cache
