"""`python -m tests.outside [PACKAGE...]`: compile and verify the ONNX files that packages on PyPI ship.

Prints a table in Markdown: one line a file with its nodes, those that are compiled, the verdict and the seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.outside.packages import PACKAGES, Package, models_of

LIMIT = 900
"""Seconds after which a compilation is given up."""

SMALL = 320
"""Size of a dimension that a model leaves open, but for the first, which is 1."""


def main(names: list[str]) -> int:
    """Returns the number of files that do not compile or verify."""
    folder = Path(tempfile.gettempdir()) / "tilec-outside"
    folder.mkdir(exist_ok=True)
    chosen = [package for package in PACKAGES if not names or package.name in names]
    columns = ("package", "purpose", "model", "nodes", "compiled", "verdict", "seconds")
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}", flush=True)
    failed = 0
    for package in chosen:
        for model in models_of(package, folder):
            line, right = _row(package, model)
            failed += not right
            print(line, flush=True)
    return failed


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
    counts = f"{plan.get('total', '')} | {plan.get('compiled', '')}"
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
