"""Compilations in processes of their own, with nothing cached but the measured device; their processor seconds."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tilec.errors import TilecError
from tilec.spec.probe import cache_folder, probed_text


def compiled(model: Path, folder: Path, sizes: Mapping[str, object]) -> float:
    """Compile `model` for this machine into `folder`, sizes and ranges as `--shape` takes them; returns the processor
    seconds of all processes that took part. Raises TilecError with what the compiler said."""
    command = [sys.executable, "-m", "tilec", "compile", str(model), "--device", "host", "-o", str(folder), "-q"]
    command += ["--to", "codegen", *(f"--shape={symbol}={size}" for symbol, size in sizes.items())]
    probed_text()
    with tempfile.TemporaryDirectory(prefix="tilec-traces-") as cache:
        _copy_probes(Path(cache))
        before = _children()
        done = subprocess.run(
            command, env={**os.environ, "XDG_CACHE_HOME": cache}, stderr=subprocess.PIPE, text=True, check=False
        )
    if done.returncode:
        raise TilecError(f"{model.name} does not compile: {done.stderr.strip() or f'exit {done.returncode}'}")
    return _children() - before


def _copy_probes(cache: Path) -> None:
    target = cache / "tilec"
    target.mkdir()
    for probe in cache_folder().glob("host-*.yaml"):
        shutil.copy(probe, target)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
