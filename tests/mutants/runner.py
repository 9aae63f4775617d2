"""Runs the tests of a mutant in a copy of the checkout, which itself is never changed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.mutants.mutant import Mutant, StaleError

Status = Literal["killed", "SURVIVED", "STALE", "BROKEN", "TIMEOUT"]

LIMIT = 600
"""Seconds after which the tests of one mutant are given up, and which each file of tests may take without a fault."""

_LEFT_OUT = (".*", "demo", "build", "dist")

_OPTIONS = ("-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "--tb=line", "--hypothesis-profile=unshrunk")
"""Tests that `make test` runs have to find a fault: slow ones are left out."""

_STATUS: dict[int, Status] = {0: "SURVIVED", 1: "killed"}
"""pytest's exit code -> what became of the mutant; with any other one no test has looked at it."""

_CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)
"""Signals by which a fault ends the process of a test, which `make test` counts as a test that failed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant: `detail` is the test that found it, or why none could."""

    mutant: Mutant
    status: Status
    seconds: float
    detail: str


def copy_checkout(root: Path, target: Path) -> Path:
    """A copy of the checkout with its compiled modules, which stay valid: times are kept."""
    shutil.copytree(root, target, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
    return target


def try_mutant(mutant: Mutant, checkout: Path) -> Outcome:
    """Run the tests of a mutant in a copy of the checkout, up to the first that fails; the copy is as before then."""
    begin = time.monotonic()
    try:
        text = mutant.text(checkout)
    except StaleError as error:
        return Outcome(mutant, "STALE", 0.0, str(error))
    with _replaced(checkout / mutant.file, text):
        code, output = run_tests(checkout, mutant.tests)
    crash = next((number.name for number in _CRASHES if code == -number), "")
    status: Status = "TIMEOUT" if code is None else "killed" if crash else _STATUS.get(code, "BROKEN")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    detail = failed[1] if failed and status == "killed" else output[-2000:] if status == "BROKEN" else crash
    return Outcome(mutant, status, time.monotonic() - begin, detail)


@contextmanager
def _replaced(path: Path, text: str) -> Iterator[None]:
    """A file with another text; Python compiles it anew both times, however fast they follow each other."""
    before = path.read_bytes()

    def write(data: bytes) -> None:
        path.write_bytes(data)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    write(text.encode())
    try:
        yield
    finally:
        write(before)


def run_tests(checkout: Path, tests: Sequence[str], *options: str, limit: float = LIMIT) -> tuple[int | None, str]:
    """pytest's exit code and its output in a checkout; None where it takes longer than `limit` seconds."""
    command = [sys.executable, "-m", "pytest", *_OPTIONS, *options, *tests]
    # Bytecode is stale where a fault has the length of what it replaces and is planted within the same second.
    environ = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=checkout, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout.decode(errors="replace")
