"""`python -m tests.outside [models | pipelines] [PACKAGE...]`: what packages on PyPI ship and do, with tilec.

Prints two tables in Markdown. `models`: one line an ONNX file with its nodes, those that are compiled, the operators of
the others, the verdict, and the seconds. `pipelines`: one line a package, whether its own code gives the same result
with tilec in onnxruntime's place.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.outside.packages import PACKAGES, Package, models_of
from tests.outside.pipeline import compared

LIMIT = 900
"""Seconds after which a compilation is given up."""

SMALL = 320
"""Size of a dimension that a model leaves open, but for the first, which is 1."""


def main(arguments: list[str]) -> int:
    """Returns the number of files that do not compile or verify, and of pipelines whose results differ."""
    folder = Path(tempfile.gettempdir()) / "tilec-outside"
    folder.mkdir(exist_ok=True)
    parts = [part for part in arguments if part in _PARTS] or list(_PARTS)
    names = [name for name in arguments if name not in _PARTS]
    chosen = [package for package in PACKAGES if not names or package.name in names]
    return sum(_PARTS[part](chosen, folder) for part in parts)


def models(packages: Sequence[Package], folder: Path) -> int:
    """Print the table of the files; returns the number of failures."""
    _head("package", "purpose", "model", "nodes", "compiled", "on onnxruntime", "verdict", "seconds")
    failed = 0
    for package in packages:
        for model in models_of(package, folder):
            line, right = _row(package, model)
            failed += not right
            print(line, flush=True)
    return failed


def pipelines(packages: Sequence[Package], folder: Path) -> int:
    """Print the table of the pipelines; returns the number of failures."""
    _head("package", "result", "seconds with onnxruntime", "with tilec, compilation included", "again")
    failed = 0
    for package in packages:
        try:
            found = compared(package, folder)
        except (RuntimeError, subprocess.SubprocessError) as error:
            same, text = False, f"{type(error).__name__}: {str(error)[:160]} | | |"
        else:
            same = found.same
            seconds = " | ".join(f"{each:.0f}" for each in found.seconds)
            text = f"{'the same' if same else found.difference} | {seconds} |"
        failed += not same
        print(f"| {package.name} | {text}", flush=True)
    return failed


_PARTS = {"models": models, "pipelines": pipelines}


def _head(*columns: str) -> None:
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}", flush=True)


def _row(package: Package, model: Path) -> tuple[str, bool]:
    """The line of one model, and whether it compiled and verified."""
    build = model.with_suffix(".tilec")
    sizes = [f"--shape={each}" for each in open_sizes(model, build, dict(package.sizes))]
    command = [sys.executable, "-m", "tilec", "compile", str(model), "--device", "host", "-o", str(build), *sizes]
    begin = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        code, text = done.returncode, done.stderr
    except subprocess.TimeoutExpired:
        code, text = -1, f"error: not done in {LIMIT} s"
    seconds = time.monotonic() - begin
    plan = _read(build / "2-plan.json").get("placement", {})
    report = _read(build / "4-report.json")
    failure = next((line for line in text.splitlines() if line.startswith("error:")), f"exit {code}")
    verdict = report.get("verdict", "") if code == 0 else failure[:120]
    others = ", ".join(sorted({reason.get("op", "") for reason in plan.get("fallback", ())}))
    counts = f"{plan.get('total', '')} | {plan.get('compiled', '')} | {others}"
    return f"| {package.name} | {package.purpose} | {model.name} | {counts} | {verdict} | {seconds:.0f} |", code == 0


def open_sizes(model: Path, build: Path, known: Mapping[str, int]) -> list[str]:
    """A size for every symbol of the imported model: the `known` one, 1 for a first dimension, else `SMALL`."""
    command = [sys.executable, "-m", "tilec", "import", str(model), "-o", str(build)]
    subprocess.run(command, capture_output=True, timeout=LIMIT, check=False)
    graph = _read(build / "1-graph.json")
    inputs = [graph["tensors"].get(port["tensor"], "") for port in graph.get("inputs", ())]
    first = {text.partition("[")[2].split(",")[0].rstrip("]") for text in inputs}
    return [f"{each}={known.get(each, 1 if each in first else SMALL)}" for each in graph.get("symbols", ())]


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
