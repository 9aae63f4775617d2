"""Versions of the programs that made the artifacts of a folder, recorded in run.json: artifacts name none, so that
plans of two versions can be compared to the byte."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilec.artifact import pretty, tools, write_text
from tilec.pipeline.job import RUN_FILE, read_run

_MAKERS = "made_by"


def outdated(name: str, folder: Path) -> str | None:
    """The program that made an artifact in `folder` and is another one now, with both versions; None when all are the
    same or nothing is known. `name` is the artifact's stage, or its file where that has a name of its own."""
    makers = read_run(folder).get(_MAKERS)
    made = makers.get(name) if isinstance(makers, Mapping) else None
    if not isinstance(made, Mapping):
        return None
    now = tools()
    for program in sorted(now, key=lambda program: program != "tilec"):
        if made.get(program) != now[program]:
            return f"made by {_called(program, made.get(program))}, here is {_called(program, now[program])}"
    return None


def _called(name: str, version: str | None) -> str:
    return f"{name} {version}" if version else f"no {name}"


def write_run(name: str, folder: Path, told: Mapping[str, Any] | None) -> None:
    """Note in run.json that the programs of now made the artifact `name`, with what its stage `told` in place of what
    was told before. Raises TilecError that names the folder."""
    before = read_run(folder)
    makers = before.get(_MAKERS)
    kept = before if told is None else told
    record = {**kept, _MAKERS: {**(makers if isinstance(makers, Mapping) else {}), name: tools()}}
    write_text(folder / RUN_FILE, pretty(record))
