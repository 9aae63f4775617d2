"""`tilec compile` of a model for this machine, and its result as users see it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SLOW_MEMORY = "host[levels.dram.bandwidth.total=2GB/s, levels.dram.bandwidth.reader=2GB/s]"
"""This machine, on which kernels read codes: decoding them takes less time than reading numbers instead."""


@dataclass(frozen=True)
class Result:
    """The exit code, the nodes that are compiled of the total, the verdict of each output, and the error if any."""

    code: int
    native: int
    total: int
    verdicts: tuple[str, ...]
    error: str


def compiled(model: Path, *options: str) -> Result:
    """Compile and verify a model into a folder beside it."""
    build = model.with_suffix(".tilec")
    command = [sys.executable, "-m", "tilec", "compile", str(model), "--device", "host", "-o", str(build), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    placement = _read(build / "2-plan.json").get("placement", {})
    outputs = _read(build / "4-report.json").get("outputs", {})
    error = next((line for line in done.stderr.splitlines() if line.startswith("error:")), "")
    verdicts = tuple(output["verdict"] for output in outputs.values())
    return Result(done.returncode, placement.get("compiled", 0), placement.get("total", 0), verdicts, error)


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
