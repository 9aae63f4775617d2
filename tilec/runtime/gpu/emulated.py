"""A driver without a GPU: kernels run in the emulator, device memory is host memory; nothing is timed honestly."""

import ctypes
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.abi.gpu_code import GpuCode, GpuKernel
from tilec.emulator import ORDERS, EmulatedKernel, Finding, Order, Region, Shape, emulated
from tilec.runtime.memory import address, aligned_block

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ALIGNMENT = 256

Recorded = list[tuple[EmulatedKernel, GpuKernel, tuple[int, ...], tuple[int, ...]]]


@dataclass
class EmulatorDriver:
    """Builds kernels into `cache` and runs them in an `order` of threads; `findings` are those of all launches, by
    kernel. Memory is poisoned when it is allocated, and a kernel cannot leave the blocks behind its pointers. Elements
    that different threads may store have `granule` bytes at least.
    """

    cache: Path
    order: Order = ORDERS[0]
    granule: int = 4
    findings: list[tuple[str, Finding]] = field(default_factory=list)
    _blocks: "dict[int, NDArray[np.uint8]]" = field(default_factory=dict)
    _graph: Recorded | None = None

    @property
    def name(self) -> str:
        """What runs the kernels."""
        return "emulator"

    def on(self, _stream: int) -> "EmulatorDriver":
        """The same: everything is done when it is asked for."""
        return self

    @property
    def is_capturing(self) -> bool:
        """Whether launches are recorded."""
        return self._graph is not None

    def load(self, code: GpuCode, folder: Path) -> dict[str, EmulatedKernel]:
        """The kernels by symbol, built for this machine. Raises UnavailableError without a C++ compiler."""
        return {kernel.symbol: emulated(code, folder, kernel.symbol, self.cache) for kernel in code.kernels}

    def allocate(self, size: int) -> int:
        """Poisoned memory."""
        block = aligned_block(size + _ALIGNMENT)
        start = -address(block) % _ALIGNMENT
        block = block[start : start + size]
        block.fill(0xFF)
        self._blocks[address(block)] = block
        return address(block)

    def free(self, address: int) -> None:
        """Give memory back."""
        del self._blocks[address]

    def upload(self, address: int, array: "NDArray[Any]") -> None:
        """Copy to a block."""
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def download(self, array: "NDArray[Any]", address: int) -> None:
        """Copy from a block."""
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy between blocks."""
        ctypes.memmove(target, source, size)

    def fill(self, address: int, byte: int, size: int) -> None:
        """Set every byte."""
        ctypes.memset(address, byte, size)

    def launch(
        self,
        module: dict[str, EmulatedKernel],
        kernel: GpuKernel,
        pointers: Sequence[int],
        sizes: Sequence[int] = (),
    ) -> None:
        """Run a kernel, or record it."""
        launch = (module[kernel.symbol], kernel, tuple(pointers), tuple(sizes))
        if self._graph is not None:
            self._graph.append(launch)
        else:
            self._run(*launch)

    def begin_graph(self) -> None:
        """Record from now on."""
        self._graph = []

    def end_graph(self) -> Recorded:
        """What was recorded."""
        graph, self._graph = self._graph, None
        assert graph is not None
        return graph

    def launch_graph(self, graph: Recorded) -> None:
        """Run what was recorded."""
        for launch in graph:
            self._run(*launch)

    def event(self) -> None:
        """No mark: what was asked for is done."""

    def elapsed(self, _first: None, _last: None, /) -> float:
        """No time: an emulator's would mislead."""
        return 0.0

    def synchronize(self) -> None:
        """Everything is done."""

    def _run(self, kernel: EmulatedKernel, how: GpuKernel, pointers: Sequence[int], sizes: Sequence[int]) -> None:
        shape = Shape(how.grid, how.block, how.shared_bytes)
        regions = [self._region(pointer) for pointer in pointers]
        told = kernel.launch(shape, [*pointers, *sizes], self.order, reachable=regions, counting=False)
        self.findings += [(how.symbol, finding) for finding in told.findings]

    def _region(self, pointer: int) -> Region:
        """The block that a pointer lies in."""
        starts = sorted(self._blocks)
        start = starts[max(0, bisect_right(starts, pointer) - 1)]
        return Region(start, self._blocks[start].nbytes, self.granule, True)
