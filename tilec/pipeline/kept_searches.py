"""Files of what searches found of groups (`tilec.scheduler.kept_search`), one for each target and version of the
scheduler, in a folder that many may share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.artifact import digest_bytes, source_version, write_text
from tilec.errors import TilecError

if TYPE_CHECKING:
    from tilec.pipeline.job import Job
    from tilec.scheduler.kept_search import KeptSearch
    from tilec.scheduler.plan_candidates import PlanState

SOURCES = ("bounds", "ir", "lower", "scheduler", "spec")
"""Folders of the package whose files decide what a search finds."""

MOST_ENTRIES = 50_000
"""Entries of a file, some 20 MB; beyond them the oldest go."""

MOST_FILES = 32
"""Files of the folder; beyond them the ones go that were written first."""


def kept_search(job: Job, scope: str) -> KeptSearch:
    """What is kept for a scope; nothing where there is no cache, or its file cannot be read."""
    from tilec.scheduler.kept_search import KeptSearch

    file = _file(job, scope)
    return KeptSearch(scope, _read(file) if file is not None else {})


def keep_search(job: Job, state: PlanState) -> None:
    """Keep what a search found; a cache that cannot be written costs time only."""
    cache = state.search.root.cache
    if cache.kept is None or (file := _file(job, cache.kept.scope)) is None:
        return
    new = cache.kept.new_entries(cache.looks, cache.tiles, cache.registers)
    if not new:
        return
    entries = list({**_read(file), **new}.items())[-MOST_ENTRIES:]
    with suppress(TilecError, OSError):
        write_text(file, json.dumps(dict(entries), separators=(",", ":")))
        for old in sorted(file.parent.glob("*.json"), key=lambda each: each.stat().st_mtime)[:-MOST_FILES]:
            old.unlink()


def _file(job: Job, scope: str) -> Path | None:
    return None if job.cache is None else job.cache.parent / "searches" / f"{scope}-{_version()}.json"


def _read(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


@cache
def _version() -> str:
    """The digest of what takes part in a search."""
    return digest_bytes(source_version(*SOURCES).encode())[:16]
