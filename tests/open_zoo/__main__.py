"""`python -m tests.open_zoo [WORD...]`: models of the zoo with open sizes, as plans, programs and code for devices.

A WORD is a part of a model's name, or a device (default: host, a100, ipu-mk2). Prints a table in Markdown: one line a
model and device with the exit code, processor seconds of the plan and of the code, and what was said of the nodes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilec import zoo

DEVICES = ("host", "a100", "ipu-mk2")

COLUMNS = ("model", "device", "exit code", "plan, CPU s", "code, CPU s", "nodes")


@dataclass(frozen=True, slots=True)
class Compiled:
    """A model compiled for a device: the exit code of the last stage that ran, processor seconds of the stages up to
    the plan and of code generation, the line on placement or the error."""

    code: int
    planning: float
    coding: float
    said: str


def compiled(model: Path, device: str, folder: Path) -> Compiled:
    """Compile without binding a size: a plan, then programs and code."""
    planned, planning, said = _timed(model, device, folder, "import", "schedule")
    if planned:
        return Compiled(planned, planning, 0, said)
    code, coding, said = _timed(model, device, folder, "codegen", "codegen")
    return Compiled(code, planning, coding, said)


def _timed(model: Path, device: str, folder: Path, first: str, last: str) -> tuple[int, float, str]:
    command = [sys.executable, "-m", "tilec", "compile", str(model), "--device", device, "-o", str(folder)]
    before = _children()
    done = subprocess.run([*command, "--from", first, "--to", last], capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if line.startswith(("placement:", "error:"))]
    return done.returncode, _children() - before, lines[0].partition(": ")[2] if lines else ""


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(words: Sequence[str]) -> int:
    """Returns 1 where a model does not compile for a device."""
    devices = [device for device in DEVICES if device in words] or DEVICES
    parts = [word for word in words if word not in DEVICES]
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}", flush=True)
    failed = 0
    for name in (name for name in zoo.names() if not parts or any(part in name for part in parts)):
        with tempfile.TemporaryDirectory(prefix="tilec-open-zoo-") as scratch:
            model = zoo.export(name, Path(scratch) / f"{name}.onnx", dynamic=True)
            for device in devices:
                found = compiled(model, device, Path(scratch) / device)
                failed |= found.code != 0
                figures = f"{found.code} | {found.planning:.0f} | {found.coding:.0f} | {found.said}"
                print(f"| {name} | {device} | {figures} |", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
