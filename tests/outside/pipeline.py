"""A package's own pipeline, with onnxruntime and with tilec in its place, on a cache of its own."""

from __future__ import annotations

import json
import math
import os
import resource
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.first_results.runs import Took, fresh_cache
from tests.outside.packages import Package
from tilec.background import Queue

ROOT = Path(__file__).resolve().parents[2]

LIMIT = 1800
"""Seconds after which a pipeline is given up."""

MODE = "TILEC_WHILE_COMPILING"

RELATIVE, ABSOLUTE = 1e-3, 1e-3
"""Distance within which two numbers of a result are the same: f32 through a network, then read out by the package."""


@dataclass(frozen=True)
class Comparison:
    """Whether all runs gave one result, the first difference, and what runs took: with onnxruntime, with tilec the
    first time, while onnxruntime serves, a time that waits for the compiler, and again with what is compiled."""

    same: bool
    difference: str
    took: tuple[Took, Took, Took, Took]


def compared(package: Package, folder: Path) -> Comparison:
    """Run a pipeline with onnxruntime and in each way. Raises RuntimeError with the last lines of a run that fails."""
    python = interpreter(package, folder / package.name)
    script = str(Path(__file__).with_name("pipelines") / f"run_{package.name.replace('-', '_')}.py")
    usual, placed = [str(python), script], [str(python), "-m", "tilec.as_onnxruntime", script]
    with tempfile.TemporaryDirectory(prefix="tilec-outside-") as scratch:
        cache = fresh_cache(Path(scratch))
        variables = {**os.environ, MODE: "fallback", "XDG_CACHE_HOME": str(cache)}
        _result(usual, variables)  # its files are in memory from now on
        reference, base = _result(usual, variables)
        result, first = _result(placed, variables)
        Queue(cache / "tilec").stop()  # of lower priority than whatever else this machine does
        waited, compiled = _result(placed, {**variables, MODE: "wait"})
        _, later = _result(usual, variables)
        repeated, again = _result(placed, variables)
    difference = next(filter(None, (first_difference(reference, each) for each in (result, waited, repeated))), "")
    return Comparison(
        not difference, difference, (min(base, later, key=lambda each: each.wall), first, compiled, again)
    )


def interpreter(package: Package, folder: Path) -> Path:
    """The Python of an environment that has the package, on top of this one's packages."""
    python = folder / "environment" / "bin" / "python"
    ready = folder / "environment" / "ready"
    if not ready.is_file():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(python.parents[1])], check=True)
        (libraries,) = python.parents[1].glob("lib/python*/site-packages")
        lines = [f"import site; site.addsitedir({each!r})\n" for each in site.getsitepackages()]
        (libraries / "beneath.pth").write_text("".join(lines) + f"{ROOT}\n", encoding="utf-8")
        pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--prefer-binary"]
        chosen = f"{package.name}=={package.version}"
        alone = ["--no-deps", chosen] if package.alone else [chosen]
        if package.needs:
            subprocess.run([*pip, *package.needs], check=True)
        subprocess.run([*pip, *alone], check=True)
        ready.touch()
    return python


def _result(command: Sequence[str], variables: Mapping[str, str]) -> tuple[Any, Took]:
    """What a pipeline prints as its last line, and what it took."""
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, env=variables)
    if done.returncode:
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
        raise RuntimeError(" ".join(last) or f"exit {done.returncode}")
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(done.stdout.strip().splitlines()[-1]), Took(wall, cpu)


def first_difference(one: Any, other: Any, place: str = "") -> str:
    """Where two JSON values differ by more than rounding, with both; empty where they do not."""
    number = (int, float)
    if isinstance(one, number) and isinstance(other, number):
        near = math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE) or (one != one and other != other)
        return "" if near else f"{place or 'result'}: {one} and {other}"
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(f"{place}[{i}]", *pair) for i, pair in enumerate(zip(one, other, strict=True))]
    elif isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = [(f"{place}.{key}", one[key], other[key]) for key in one]
    else:
        return "" if one == other else f"{place or 'result'}: {str(one)[:60]} and {str(other)[:60]}"
    return next((text for where, a, b in pairs if (text := first_difference(a, b, where))), "")
