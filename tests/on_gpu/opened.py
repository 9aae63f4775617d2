"""A compiled case on a device: run once as a session does, or recorded many times over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.abi.gpu_code import GpuLaunch
from tilec.abi.manifest import TensorSpec, read_manifest
from tilec.ir.types import numpy_dtype
from tilec.runtime.gpu.driver import Driver
from tilec.runtime.gpu.executor import GpuExecutor, GpuRun


@dataclass
class Opened:
    """An executor with a run of its own, its launches and the arrays that outputs come back to."""

    run: GpuRun
    launches: Sequence[GpuLaunch]
    outputs: Mapping[str, NDArray[Any]]

    def compute(self) -> dict[str, NDArray[Any]]:
        """Poison what is written, run, and return copies of the outputs."""
        for array in self.outputs.values():
            array.view(np.uint8).fill(0xFF)
        self.run.poison()
        self.run.launch(0, None)
        return {name: array.copy() for name, array in self.outputs.items()}

    def step_by_step(self) -> None:
        """Run one launch after another, without a graph."""
        for number in range(len(self.launches)):
            self.run.step(0, number)

    def enqueue(self, launches: Sequence[GpuLaunch] | None = None) -> None:
        """Launch what is on the device once more, all of it or some."""
        for each in self.launches if launches is None else launches:
            self.run._launch(each)


def opened(folder: Path, driver: Driver, feeds: Mapping[str, NDArray[Any]]) -> Opened:
    """A case that was compiled into a folder, its inputs bound to arrays of the host."""
    manifest = read_manifest(folder)
    executor = GpuExecutor(folder, manifest, driver)
    if len(manifest.segments) > 1:
        raise ValueError(f"{folder}: calls of onnxruntime lie between its kernels")
    outputs = {
        spec.name: np.empty(spec.bound_shape, numpy_dtype(spec.ttype))
        for spec in manifest.outputs
        if isinstance(spec, TensorSpec)
    }
    run = GpuRun(executor)
    run.bind(0, [*(np.ascontiguousarray(feeds[spec.name]) for spec in manifest.inputs), *outputs.values()])
    return Opened(run, executor.code.segment(0), outputs)


def enqueued(devices: Iterable[Opened]) -> None:
    """Launch each once more."""
    for each in devices:
        each.enqueue()
