"""`python -m tests.outside [models | pipelines] [PACKAGE...] [--below MB]`: what PyPI's packages ship, with tilec.

Prints two tables in Markdown. `models`: one line an ONNX file, compiled as a new user would, without a flag: its nodes,
those that are compiled, why the others are not, the verdict, processor seconds of all processes, and the commit.
`pipelines`: one line a package, whether its own code gives the same result with tilec in onnxruntime's place.
`python -m docs.measured open-files FILE` puts rows of files into the manual.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from docs.provenance import commit_now
from tests.outside.compiled import compiled
from tests.outside.packages import PACKAGES, Package, models_of
from tests.outside.pipeline import compared
from tilec.artifact import tools
from tilec.spec.probe import probed_text

LIMIT = 300.0
"""Processor seconds after which a compilation is given up."""

_PARTS = ("models", "pipelines")


def main(arguments: list[str]) -> int:
    """Returns the number of files that do not compile or verify, and of pipelines whose results differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.outside")
    parser.add_argument("words", nargs="*", metavar="models|pipelines|PACKAGE")
    parser.add_argument("--below", type=float, default=math.inf, metavar="MB", help="files of less than that only")
    chosen = parser.parse_intermixed_args(arguments)
    folder = Path(tempfile.gettempdir()) / "tilec-outside"
    folder.mkdir(exist_ok=True)
    names = [word for word in chosen.words if word not in _PARTS]
    packages = [package for package in PACKAGES if not names or package.name in names]
    failed = 0
    for part in [word for word in chosen.words if word in _PARTS] or _PARTS:
        failed += models(packages, folder, chosen.below * 1e6) if part == "models" else pipelines(packages, folder)
    return failed


def models(packages: Sequence[Package], folder: Path, largest: float) -> int:
    """Print the table of the files; returns the number of failures."""
    _head("package", "purpose", "model", "nodes", "compiled", "on onnxruntime", "verdict", "CPU s", "commit")
    failed = 0
    for package in packages:
        files = list(models_of(package, folder, math.inf))
        for model in (file for file in files if file.stat().st_size < largest):
            line, right = _row(package, model, shortest_name(model, files))
            failed += not right
            print(line, flush=True)
    return failed


def pipelines(packages: Sequence[Package], folder: Path) -> int:
    """Print the table of the pipelines; returns the number of failures."""
    probed_text()  # every cache begins with what these have found
    tools()
    _head("package", "result", "onnxruntime s (CPU), ratio", "first with tilec", "compiling", "again")
    failed = 0
    for package in (package for package in packages if package.pipeline):
        try:
            found = compared(package, folder)
        except (RuntimeError, subprocess.SubprocessError) as error:
            same, text = False, f"{type(error).__name__}: {str(error)[:160]} | | | |"
        else:
            same = found.same
            base = found.took[0]
            seconds = (f"{each.wall:.2f} ({each.cpu:.2f}), {each.wall / base.wall:.2f}" for each in found.took)
            text = f"{'the same' if same else found.difference} | {' | '.join(seconds)} |"
        failed += not same
        print(f"| {package.name} | {text}", flush=True)
    return failed


def _head(*columns: str) -> None:
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}", flush=True)


def shortest_name(file: Path, files: Sequence[Path]) -> str:
    """As much of the end of a path as tells it from those of the other files."""
    enough = next(n for n in count(1) if [each.parts[-n:] for each in files].count(file.parts[-n:]) == 1)
    return "/".join(file.parts[-enough:])


def _row(package: Package, model: Path, name: str) -> tuple[str, bool]:
    """The line of one model, and whether it compiled and verified."""
    found = compiled(model, model.with_suffix(".tilec"), LIMIT)
    figures = f"{found.nodes} | {found.native} | {found.reasons} | {found.verdict} | {found.seconds:.0f}"
    return f"| {package.name} | {package.purpose} | {name} | {figures} | {commit_now()} |", found.right


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
