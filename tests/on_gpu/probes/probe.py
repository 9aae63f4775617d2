"""Kernels written for a measurement, compiled by NVRTC and launched through the run time's driver."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.on_gpu.clock import replayed
from tilec.abi.gpu_code import CodeFile, GpuCode, GpuKernel
from tilec.artifact import digest_bytes
from tilec.codegen.gpu import nvrtc
from tilec.runtime.gpu.driver import Driver

PROCESSOR = "sm_90a"

SMS = 132

LAUNCHES = 4
"""Launches that are timed together."""

HEAD = """#include "tile.h"
typedef unsigned long long u64;
T_DEV u64 timer() { u64 t; asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t)); return t; }
T_DEV u64 cycles() { u64 t; asm volatile("mov.u64 %0, %clock64;" : "=l"(t) :: "memory"); return t; }
#define BEGIN __syncthreads(); const u64 t0 = timer(), c0 = cycles();
#define END __syncthreads(); if (tid_ == 0) { out[bid_ * 2] = cycles() - c0; out[bid_ * 2 + 1] = timer() - t0; }
"""
"""What texts begin with: a kernel's `out` takes the cycles and the nanoseconds between BEGIN and END of every block."""


def compiled(text: str) -> bytes:
    """The machine code of a text. Raises TilecError with the compiler's words."""
    library = nvrtc.compiler_library()
    if library is None:
        raise RuntimeError("there is no NVRTC")
    header = files("tilec.codegen.gpu").joinpath("tile.h").read_text(encoding="utf-8")
    return nvrtc.compile_kernels(library, HEAD + text, {"tile.h": header}, PROCESSOR).binary


@dataclass
class Probe:
    """Loaded kernels on a device."""

    driver: Driver
    module: Any

    def launch(self, symbol: str, grid: int, block: int, pointers: Sequence[int], *sizes: int, shared: int = 0) -> None:
        """Launch a kernel."""
        self.driver.launch(self.module, GpuKernel(symbol, symbol, grid, block, shared), pointers, sizes)

    def blocks(
        self,
        symbol: str,
        grid: int,
        block: int,
        pointers: Sequence[int],
        *sizes: int,
        shared: int = 0,
        launches: int = 2,
    ) -> tuple[float, float]:
        """(cycles, MHz): the medians of all blocks of the last launch; `out` comes before the pointers."""
        out = self.words(np.zeros(2 * grid, np.uint64))
        for _ in range(launches):
            self.launch(symbol, grid, block, [out, *pointers], *sizes, shared=shared)
        told = self.read(out, np.zeros(2 * grid, np.uint64)).reshape(grid, 2)
        self.driver.free(out)
        cycles, nanoseconds = (median(told[:, each].tolist()) for each in (0, 1))
        return cycles, 1e3 * cycles / max(1.0, nanoseconds)

    def seconds(
        self, symbol: str, grid: int, block: int, pointers: Sequence[int], *sizes: int, shared: int = 0
    ) -> float:
        """The median time of a launch in a graph of some."""

        def enqueue() -> None:
            for _ in range(LAUNCHES):
                self.launch(symbol, grid, block, pointers, *sizes, shared=shared)

        return replayed(self.driver, enqueue, LAUNCHES, rounds=3)["us"] / 1e6

    def words(self, array: NDArray[Any]) -> int:
        """A copy of an array on the device."""
        place = self.driver.allocate(array.nbytes)
        self.driver.upload(place, array)
        self.driver.synchronize()
        return place

    def read(self, place: int, like: NDArray[Any]) -> NDArray[Any]:
        """An array of the device."""
        self.driver.download(like, place)
        return like


@cache
def noise(size: int) -> NDArray[np.uint16]:
    """Random numbers of half precision between 1 and 2 with either sign, `size` bytes."""
    random = np.random.default_rng(0).integers(0, 1 << 16, size // 2, dtype=np.uint16)
    return (random & 0x83FF) | 0x3C00


def loaded(driver: Driver, binary: bytes, symbols: Sequence[str]) -> Probe:
    """Kernels on a device."""
    with tempfile.TemporaryDirectory(prefix="tilec-probe-") as folder:
        file = Path(folder) / "probe.cubin"
        file.write_bytes(binary)
        there = CodeFile(file.name, digest_bytes(binary))
        kernels = tuple(GpuKernel(symbol, symbol, 1, 1) for symbol in symbols)
        return Probe(driver, driver.load(GpuCode(PROCESSOR, there, kernels, (), binary=there), Path(folder)))
