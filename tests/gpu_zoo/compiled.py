"""A model of the zoo compiled for a GPU by the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilec import zoo


@dataclass(frozen=True)
class Result:
    """Kernels with what the compiler of the GPU says of them, predicted picoseconds of the launches of each, the number
    of groups, the verdict of the emulator (empty when it was not asked), and the first error."""

    kernels: Sequence[Mapping[str, Any]] = ()
    picoseconds: Mapping[str, int] = field(default_factory=dict)
    groups: int = 0
    verdict: str = ""
    error: str = ""

    @property
    def spilling(self) -> list[Mapping[str, Any]]:
        """Kernels that store registers for want of them."""
        return [kernel for kernel in self.kernels if kernel.get("spilled_bytes")]

    @property
    def right(self) -> bool:
        """Whether all went well and no kernel spills."""
        return not self.error and not self.spilling


def compiled(model: str, device: str, folder: Path, verify: bool) -> Result:
    """Compile a model, in a folder of its own."""
    zoo.export(model, folder / "model.onnx")
    build = folder / "build"
    error = _tilec("compile", folder / "model.onnx", "--device", device, "-o", build, "--to", "codegen")
    if error:
        return Result(error=error)
    plan = json.loads((build / "2-plan.json").read_text(encoding="utf-8"))
    gpu = json.loads((build / "3-kernels.json").read_text(encoding="utf-8"))["runtime"]["gpu"]
    times = {group["name"]: int(group["cost"]["picoseconds"]) for group in plan["groups"]}
    picoseconds = dict.fromkeys((kernel["symbol"] for kernel in gpu["kernels"]), 0)
    for launch in gpu["launches"]:
        picoseconds[launch["symbol"]] += times.get(launch["group"], 0)
    error = _tilec("verify", build, "--on", "emulator") if verify else ""
    return Result(gpu["kernels"], picoseconds, len(plan["groups"]), "pass" if verify and not error else "", error)


def _tilec(*arguments: object) -> str:
    """Run the command line; returns its first error, empty for none."""
    command = [sys.executable, "-m", "tilec", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    lines = done.stderr.splitlines()
    return next((line for line in lines if line.startswith("error:")), f"exit {done.returncode}: {lines[-1:]}")
