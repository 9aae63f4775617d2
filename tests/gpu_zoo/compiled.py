"""A model of the zoo compiled for a GPU by the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.gpu_zoo.counted import shares
from tests.gpu_zoo.forms import TYPES

_STAGE = re.compile(r"^(\w+): done in ([\d.]+) s$", re.MULTILINE)


@dataclass(frozen=True)
class Result:
    """Kernels with what the compiler of the GPU says of them, predicted picoseconds of the launches of each, the number
    of groups, seconds by stage, the verdict of the emulator (empty when it was not asked) with the shares of the time
    in kernels whose transfers are near the least and those planned, and the first error."""

    kernels: Sequence[Mapping[str, Any]] = ()
    picoseconds: Mapping[str, int] = field(default_factory=dict)
    groups: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    verdict: str = ""
    near: Mapping[str, float] = field(default_factory=dict)
    error: str = ""

    @property
    def spilling(self) -> list[Mapping[str, Any]]:
        """Kernels that store registers for want of them."""
        return [kernel for kernel in self.kernels if kernel.get("spilled_bytes")]

    @property
    def right(self) -> bool:
        """Whether all went well and no kernel spills."""
        return not self.error and not self.spilling


def compiled(model: str, ttype: str, device: str, folder: Path, verify: bool) -> Result:
    """Compile a model in a type, in a folder of its own."""
    source, build = TYPES[ttype](model, folder), folder / "build"
    options = ("--device", device, "-o", build, "--to", "codegen", "--no-bounds", *source.options)
    seconds, error = _tilec("compile", source.model, *options)
    if error:
        return Result(seconds=seconds, error=error)
    plan = json.loads((build / "2-plan.json").read_text(encoding="utf-8"))
    code = json.loads((build / "3-kernels.json").read_text(encoding="utf-8"))
    result = Result(groups=len(plan["groups"]), seconds=seconds, error=code.get("without_code", ""))
    if result.error:
        return result
    gpu = code["runtime"]["gpu"]
    times = {group["name"]: int(group["cost"]["picoseconds"]) for group in plan["groups"]}
    picoseconds = dict.fromkeys((kernel["symbol"] for kernel in gpu["kernels"]), 0)
    for launch in gpu["launches"]:
        picoseconds[launch["symbol"]] += times.get(launch["group"], 0)
    result = replace(result, kernels=gpu["kernels"], picoseconds=picoseconds)
    return _verified(result, build) if verify else result


def _verified(result: Result, build: Path) -> Result:
    seconds, error = _tilec("verify", build, "--on", "emulator")
    result = replace(result, seconds={**result.seconds, **seconds}, error=error)
    report = build / "4-report.json"
    counts = json.loads(report.read_text(encoding="utf-8")).get("kernels", {}) if report.exists() else {}
    times = {kernel["kernel"]: result.picoseconds[kernel["symbol"]] for kernel in result.kernels}
    needless = sum(len(kernel.get("needless_barriers", ())) for kernel in counts.values())
    verdict = "" if error else f"pass, {needless} needless barriers" if needless else "pass"
    return replace(result, verdict=verdict, near=shares(counts, times))


def _tilec(*arguments: object) -> tuple[dict[str, float], str]:
    """Run the command line; returns the seconds of its stages and its first error, empty for none."""
    command = [sys.executable, "-m", "tilec", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = {stage: float(number) for stage, number in _STAGE.findall(done.stderr)}
    if done.returncode == 0:
        return seconds, ""
    lines = done.stderr.splitlines()
    return seconds, next((line for line in lines if line.startswith("error:")), f"exit {done.returncode}: {lines[-1:]}")
