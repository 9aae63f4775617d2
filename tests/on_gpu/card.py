"""The device, the cases as they are restored, and results that are written as they come."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.on_gpu.case import Case
from tilec.errors import UnavailableError
from tilec.runtime.gpu.cuda import CudaDriver
from tilec.runtime.gpu.driver import Driver
from tilec.runtime.gpu.emulated import EmulatorDriver
from tilec.verify.on_emulator import emulator_cache

POLL = 0.2
"""Seconds between two looks at what others do."""


class LostDeviceError(Exception):
    """A kernel failed: nothing runs in this process any more."""


@dataclass
class Card:
    """A device until `end`, a time of the monotonic clock; without `timed` it is the emulator, whose times mean
    nothing. Cases are restored into `work` by someone else."""

    out: Path
    work: Path
    chosen: Sequence[Case]
    end: float
    timed: bool = True
    results: dict[str, dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def driver(self) -> Driver:
        """CUDA's, or the emulator's."""
        return CudaDriver() if self.timed else EmulatorDriver(emulator_cache())

    @cached_property
    def torch(self) -> Any:
        """PyTorch with a GPU; None where there is none."""
        try:
            import torch
        except ImportError:
            return None
        if not (self.timed and torch.cuda.is_available()):
            return None
        torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark = False, True
        return torch

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.end - time.monotonic()

    def restored(self, case: Case) -> bool:
        """Whether a case was restored, well or not."""
        return (self.work / f"{case.name}.json").exists()

    def state(self, case: Case) -> dict[str, Any]:
        """How a case was restored, which is waited for: `how`, `error`."""
        while not self.restored(case):
            if self.left <= 0:
                return {"how": "not", "error": "there was no time"}
            self.touch(case.name)
            time.sleep(POLL)
        told: dict[str, Any] = json.loads((self.work / f"{case.name}.json").read_text(encoding="utf-8"))
        return told

    def build(self, case: Case) -> Path:
        """The folder of a case's kernels."""
        return self.work / case.name / "build"

    def touch(self, name: str) -> None:
        """Say what is being done, for whoever watches."""
        self.work.mkdir(parents=True, exist_ok=True)
        (self.work / "doing").write_text(name, encoding="utf-8")

    def found(self, step: str) -> dict[str, Any]:
        """The results of a step so far, also those of an earlier run into the same folder."""
        if step not in self.results:
            file = self.out / f"{step}.json"
            self.results[step] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        return self.results[step]

    def note(self, step: str, name: str, result: Any) -> None:
        """Add a result to a step, and write it."""
        self.found(step)[name] = result
        self.out.mkdir(parents=True, exist_ok=True)
        new = self.out / f"{step}.json.new"
        new.write_text(json.dumps(self.found(step), indent=1) + "\n", encoding="utf-8")
        new.rename(self.out / f"{step}.json")

    def failed(self, step: str, name: str, error: Exception) -> None:
        """Note an error. Raises LostDeviceError for one of the device, behind which all others fail."""
        self.note(step, name, {"error": f"{type(error).__name__}: {error}"[:600]})
        print(f"{step}: {name}: {error}", flush=True)
        if isinstance(error, UnavailableError) or "CUDA error" in str(error):
            raise LostDeviceError(name)
