"""Versions of the programs that made the artifacts of a folder, recorded in run.json: artifacts name none, so that
plans of two versions can be compared to the byte."""

import os
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tilec.artifact import pretty, write_text
from tilec.pipeline.job import RUN_FILE, read_run

_MAKERS = "made_by"

_PACKAGES = ("tilec", "apache-tvm", "apache-tvm-ffi", "apache-tvm-ffi-orcjit", "numpy", "onnx", "onnxruntime")

_DIGITS = 12
"""Of a sha256."""


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


@cache
def tools() -> dict[str, str]:
    """Package -> version, empty for one that is not installed; tilec's with a digest of its files, which change between
    versions in a checkout."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return {**found, "tilec": " ".join((found["tilec"], *_sources(Path(__file__).parents[1])))}


def _sources(root: Path) -> tuple[str, ...]:
    """The digest of a package's files, the same wherever they lie; none for a package in an archive."""
    files = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(root)
        for name in names
        if name.endswith((".py", ".ll"))
    )
    digest = sha256()
    for file in files:
        digest.update(f"{os.path.relpath(file, root)}\n".encode())
        digest.update(Path(file).read_bytes())
    return (digest.hexdigest()[:_DIGITS],) if files else ()
