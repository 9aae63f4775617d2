"""`python -m tests.exports [MODEL...]`: small models exported by PyTorch with open sizes, compiled and run by tilec.

Prints a table in Markdown, one line a model: its exporter, its nodes and those that are native, the verdict of tilec,
the largest error of a session's results at four sizes, as a share of the largest value, processor seconds, and the
commit. Results are compared with those of onnxruntime and, where the exported file says the same as the module, of
PyTorch. `python -m docs.measured exports FILE` puts rows into the manual.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from docs.provenance import commit_now
from tests.cpu_limit import run_limited
from tests.exports.environment import FOLDER, ROOT, interpreter
from tests.outside.compiled import compiled

LIMIT = 300.0
"""Processor seconds after which a compilation is given up."""

TOLERANCE = 1e-4
"""Share of a result's largest value within which f32 arithmetic in another order stays."""

COLUMNS = ("model", "exporter", "nodes", "native", "on onnxruntime", "verdict", "worst error", "CPU s", "commit")


def main(words: Sequence[str]) -> int:
    """Returns 1 where a model does not compile, does not verify or computes something else."""
    python = interpreter()
    listed = subprocess.run(
        [str(python), "-m", "tests.exports.build"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}", flush=True)
    failed = 0
    for name, exporter in (line.split() for line in listed.stdout.splitlines()):
        if not words or name in words:
            line, right = _row(python, name, exporter)
            failed |= not right
            print(line, flush=True)
    return failed


def _row(python: Path, name: str, exporter: str) -> tuple[str, bool]:
    model, build = FOLDER / f"{name}.onnx", FOLDER / f"{name}.tilec"
    feeds = sorted(FOLDER.glob(f"{name}-[0-9].npz"))
    if len(feeds) < 4:
        done = subprocess.run(
            [str(python), "-m", "tests.exports.build", name], cwd=ROOT, capture_output=True, check=False
        )
        (FOLDER / f"{name}.log").write_bytes(done.stderr)
        if done.returncode:
            return f"| {name} | {exporter} | | | | not exported | | | |", False
        feeds = sorted(FOLDER.glob(f"{name}-[0-9].npz"))
    found = compiled(model, build, LIMIT)
    error, near = _compared(model, build, feeds) if found.right else ("", False)
    figures = f"{found.nodes} | {found.native} | {found.reasons} | {found.verdict} | {error} | {found.seconds:.0f}"
    return f"| {name} | {exporter} | {figures} | {commit_now()} |", near


def _compared(model: Path, build: Path, feeds: Sequence[Path]) -> tuple[str, bool]:
    command = [sys.executable, "-m", "tests.exports.compare", str(model), str(build), *map(str, feeds)]
    done = run_limited(command, LIMIT)
    if done.code:
        return done.ended or (done.errors.strip().splitlines() or [f"exit {done.code}"])[-1][:160], False
    error = json.loads(done.output)
    return f"{error:.1e}", error <= TOLERANCE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
