"""`python -m tests.compile_times [MODEL...] [--device DEVICE] [--rounds N] [--full]`: processor seconds of compiling.

Prints a table in Markdown, one line a model of the zoo, ONNX file, or model that grows (growth.py: `equal-1000`,
`distinct-300`, `chain-20000`): `tilec compile` with nothing cached but the
measured machine, the same with `--effort quick`, again in another folder with what the first one cached, with all
tensors renamed, with one weight changed in the same folder, and with nothing changed; and the commit. Seconds are those
of all processes, imports included; the median of the rounds. With --full the first of these alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import onnx
from onnx import numpy_helper

from docs.provenance import commit_now
from tests.compile_times.growth import is_growing, write_growing
from tests.cpu_limit import run_limited
from tilec import zoo
from tilec.artifact import cache_folder

LIMIT = 600.0
"""Processor seconds after which a compilation is given up."""

COLUMNS = ("model", "full", "quick", "again", "renamed", "one weight", "unchanged", "commit")


def main(words: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(zoo.names()))
    parser.add_argument("--device", default="host")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--full", action="store_true")
    given = parser.parse_args(words)
    measured = list(cache_folder().glob("host-*.yaml"))
    columns = (*COLUMNS[:2], COLUMNS[-1]) if given.full else COLUMNS
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}", flush=True)
    for name in given.models:
        rows = [_seconds(name, given.device, measured, given.full) for _ in range(given.rounds)]
        cells = [_cell([row[column] for row in rows]) for column in range(len(columns) - 2)]
        print(f"| {Path(name).stem} | {' | '.join(cells)} | {commit_now()} |", flush=True)


def _cell(found: Sequence[float | None]) -> str:
    known = [each for each in found if each is not None]
    return f"{median(known):.1f}" if len(known) == len(found) else "failed"


def _seconds(name: str, device: str, measured: Sequence[Path], only_full: bool) -> list[float | None]:
    """Processor seconds of every compilation of a model, or of the first alone; None for one that fails."""
    with TemporaryDirectory() as there:
        folder = Path(there)
        model = folder / "model.onnx"
        if Path(name).is_file():
            shutil.copyfile(name, model)
        elif is_growing(name):
            write_growing(name, model)
        else:
            zoo.export(name, model)

        def compiled(cache: str, output: str, *more: str, of: Path = model) -> float | None:
            home = folder / cache / "tilec"
            if not home.is_dir():
                home.mkdir(parents=True)
                for file in measured:
                    shutil.copyfile(file, home / file.name)
            os.environ["XDG_CACHE_HOME"] = str(folder / cache)
            command = [sys.executable, "-m", "tilec", "compile", of, "--device", device, "-o", folder / output, "-q"]
            ran = run_limited([*map(str, command), *more, "--allow-unverified"], LIMIT)
            return ran.seconds if ran.code == 0 else None

        full = compiled("cache", "full")
        if only_full:
            return [full]
        quick = compiled("other", "quick", "--effort", "quick")
        again = compiled("cache", "again")
        renamed = compiled("cache", "renamed", of=_renamed(model))
        unchanged = compiled("cache", "full")
        _change_weight(model)
        return [full, quick, again, renamed, compiled("cache", "full"), unchanged]


def _renamed(model: Path) -> Path:
    """A copy of a model with other names for all tensors but its inputs and outputs."""
    read = onnx.load(model)
    kept = {"", *(port.name for port in (*read.graph.input, *read.graph.output))}

    def of(name: str) -> str:
        return name if name in kept else f"renamed.{name[::-1]}"

    for node in read.graph.node:
        node.name = of(node.name)
        for names in (node.input, node.output):
            names[:] = [of(name) for name in names]
    values: list[Any] = [*read.graph.value_info, *read.graph.initializer]
    for value in values:
        value.name = of(value.name)
    other = model.with_name("renamed.onnx")
    onnx.save(read, other)
    return other


def _change_weight(model: Path) -> None:
    """Double the largest weight of a model."""
    read = onnx.load(model)
    weight = max(read.graph.initializer, key=lambda each: each.ByteSize(), default=None)
    if weight is None:
        return
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * 2, weight.name))
    onnx.save(read, model)


if __name__ == "__main__":
    main(sys.argv[1:])
