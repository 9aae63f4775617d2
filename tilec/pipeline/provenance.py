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


def outdated(stage: str, folder: Path) -> str | None:
    """The program that made what `stage` wrote in `folder` and is another one now, with both versions; None when all
    are the same or nothing is known."""
    makers = read_run(folder).get(_MAKERS)
    made = makers.get(stage) if isinstance(makers, Mapping) else None
    if not isinstance(made, Mapping):
        return None
    now = tools()
    for name in sorted(now, key=lambda name: name != "tilec"):
        if made.get(name) != now[name]:
            return f"made by {_called(name, made.get(name))}, here is {_called(name, now[name])}"
    return None


def _called(name: str, version: str | None) -> str:
    return f"{name} {version}" if version else f"no {name}"


def write_run(stage: str, folder: Path, told: Mapping[str, Any] | None) -> None:
    """Note in run.json that the programs of now made what `stage` wrote, with what it `told` in place of what was told
    before. Raises TilecError that names the folder."""
    before = read_run(folder)
    makers = before.get(_MAKERS)
    kept = before if told is None else told
    record = {**kept, _MAKERS: {**(makers if isinstance(makers, Mapping) else {}), stage: tools()}}
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
