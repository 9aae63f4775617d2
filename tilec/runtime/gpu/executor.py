"""The executor of GPU back ends: weights uploaded once, one arena, a graph for every segment of launches."""

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.abi.gpu_code import GpuArgument, GpuCode, GpuLaunch
from tilec.abi.manifest import CallInput, Manifest, TensorSpec
from tilec.errors import ArtifactError, TilecError, UnavailableError
from tilec.ir.types import element_bytes, numpy_dtype
from tilec.runtime.device_array import DeviceArray
from tilec.runtime.gpu.driver import Driver
from tilec.runtime.memory import map_weights
from tilec.runtime.times import Times

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALIGNMENT = 256
"""Bytes at whose multiples constants begin, as memory does that a driver allocates."""

POISON = 0xFF


def load(folder: Path, manifest: Manifest, _threads: int, _pin: bool, check: bool) -> "GpuExecutor":
    """Open a model on the GPU of this machine; a `tilec.runtime.executor.Loader`.

    Raises UnavailableError without a driver or a device.
    """
    from tilec.runtime.gpu.cuda import CudaDriver

    return GpuExecutor(folder, manifest, CudaDriver(), check)


class GpuExecutor:
    """A module and weights on a device, and runs that wait for a caller. They share a stream: one at a time uses it."""

    def __init__(self, folder: Path, manifest: Manifest, driver: Driver, check: bool = False) -> None:
        if manifest.sizes is not None:
            raise UnavailableError("models with symbols do not run on GPUs yet", str(folder), "Bind them: --shape.")
        if manifest.gpu is None:
            raise ArtifactError("the manifest has no kernels of a GPU", str(folder), "Run `tilec codegen` again.")
        self.driver = driver
        self.manifest = manifest
        self.code: GpuCode = manifest.gpu
        self.module = driver.load(manifest.gpu, folder)
        self._places = self._upload([map_weights(folder, file, check) for file in manifest.weights])
        self._waiting: list[GpuRun] = []
        self.stream = threading.Lock()

    def constant(self, number: int) -> int:
        """The address of a constant on the device."""
        return self._places[number]

    def _upload(self, files: "Sequence[NDArray[np.uint8]]") -> list[int]:
        """Copy the constants, each to where vectors of its elements may begin, as they may not in a file."""
        constants = self.manifest.constants
        offsets = list(accumulate((-(-each.bytes // ALIGNMENT) * ALIGNMENT for each in constants), initial=0))
        block = self.allocate(self, offsets[-1])
        for each, offset in zip(constants, offsets, strict=False):
            self.driver.upload(block + offset, files[each.file][each.offset : each.offset + each.bytes])
        return [block + offset for offset in offsets[:-1]]

    @property
    def takes_device_arrays(self) -> bool:
        """Whether inputs may lie on the device: where nothing on the host looks at them."""
        return not (self.manifest.calls or self.manifest.ranges)

    def take_run(self) -> "GpuRun":
        """Working memory that no other run uses."""
        with suppress(IndexError):
            return self._waiting.pop()
        return GpuRun(self)

    def give_run(self, run: "GpuRun") -> None:
        """Let the next caller have it."""
        self._waiting.append(run)

    def allocate(self, owner: object, size: int) -> int:
        """Memory of the device that is freed with its owner."""
        place = self.driver.allocate(max(1, size))
        weakref.finalize(owner, _free, self.driver, place).atexit = False
        return place


def _free(driver: Driver, place: int) -> None:
    with suppress(TilecError):
        driver.free(place)


class GpuRun:
    """An arena, a buffer for every tensor that crosses the border of the device, and a graph for every segment that has
    run. What was bound is uploaded before the next launches; outputs come back behind those that write them."""

    def __init__(self, executor: GpuExecutor) -> None:
        manifest = executor.manifest
        results = [result.tensor for call in manifest.calls for result in call.outputs]
        specs = [*manifest.inputs, *results, *manifest.outputs]
        self._executor, self._driver = executor, executor.driver
        self._first_output = len(manifest.inputs) + len(results)
        sizes = [_bytes(spec) if isinstance(spec, TensorSpec) else 0 for spec in specs]
        self._tensors = [executor.allocate(self, size) for size in sizes]
        self._arena = executor.allocate(self, manifest.arena_bytes)
        self._bound: list[Any] = [None] * len(specs)
        self._unsent: set[int] = set()
        self._graphs: dict[int, Any] = {}

    def bind(self, first: int, arrays: Sequence[Any]) -> None:
        """Take arrays of the host, or of the device, from tensor number `first` on."""
        for number, array in enumerate(arrays, first):
            self._bound[number] = array
            if number < self._first_output and isinstance(array, np.ndarray | DeviceArray):
                self._unsent.add(number)

    def launch(self, segment: int, times: Times | None) -> None:
        """Run a segment to its end, as a graph; one launch after another where times are wanted."""
        launches = self._executor.code.segment(segment)
        with self._executor.stream:
            self._send()
            if times is not None:
                self._timed(segment, launches, times)
            elif launches:
                if segment not in self._graphs:
                    self._graphs[segment] = self._recorded(launches)
                self._driver.launch_graph(self._graphs[segment])
            self._fetch(launches)

    def step(self, segment: int, launch: int) -> None:
        """Run one launch of a segment alone."""
        chosen = self._executor.code.segment(segment)[launch]
        with self._executor.stream:
            self._send()
            self._launch(chosen)
            self._fetch([chosen])

    def poison(self) -> None:
        """Fill the arena with bytes that are NaN in every floating-point type."""
        with self._executor.stream:
            self._driver.fill(self._arena, POISON, self._executor.manifest.arena_bytes)

    def operand(self, spec: CallInput) -> Any:
        """A copy of what a call reads from the arena or the constants."""
        assert spec.tensor is not None
        array: NDArray[Any] = np.empty(spec.tensor.bound_shape, numpy_dtype(spec.tensor.ttype))
        place = self._arena + spec.at if spec.space == "arena" else self._executor.constant(spec.at)
        with self._executor.stream:
            self._driver.download(array, place)
        return array

    def _send(self) -> None:
        for number in sorted(self._unsent):
            given = self._bound[number]
            if isinstance(given, DeviceArray):
                self._driver.copy(self._tensors[number], given.address, given.nbytes)
            else:
                self._driver.upload(self._tensors[number], given)
        self._unsent.clear()

    def _fetch(self, launches: Sequence[GpuLaunch]) -> None:
        """Bring back the outputs that launches write."""
        written = {a.index for each in launches for a in each.arguments if a.space == "output" and a.writes}
        for number in sorted(written):
            target, place = self._bound[self._first_output + number], self._tensors[self._first_output + number]
            if isinstance(target, DeviceArray):
                self._driver.copy(target.address, place, target.nbytes)
            else:
                self._driver.download(target, place)
        self._driver.synchronize()

    def _recorded(self, launches: Sequence[GpuLaunch]) -> Any:
        self._driver.begin_graph()
        for each in launches:
            self._launch(each)
        return self._driver.end_graph()

    def _timed(self, segment: int, launches: Sequence[GpuLaunch], times: Times) -> None:
        """Note when each launch began and ended, on the host's clock from the first of them on."""
        marks = [self._driver.event()]
        begin = time.monotonic_ns()
        for each in launches:
            self._launch(each)
            marks.append(self._driver.event())
        self._driver.synchronize()
        ends = [begin + round(self._driver.elapsed(marks[0], mark) * 1e9) for mark in marks]
        times.of(segment)[:] = list(pairwise(ends))

    def _launch(self, launch: GpuLaunch) -> None:
        pointers = [self._pointer(argument) for argument in launch.arguments]
        self._driver.launch(self._executor.module, self._executor.code.kernel(launch.symbol), pointers)

    def _pointer(self, argument: GpuArgument) -> int:
        bases: dict[str, Callable[[], int]] = {
            "input": lambda: self._tensors[argument.index],
            "output": lambda: self._tensors[self._first_output + argument.index],
            "arena": lambda: self._arena,
            "constant": lambda: self._executor.constant(argument.index),
        }
        return bases[argument.space]() + argument.offset


def _bytes(spec: TensorSpec) -> int:
    return prod(spec.bound_shape) * element_bytes(spec.ttype)
