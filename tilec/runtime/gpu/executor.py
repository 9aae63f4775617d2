"""The executor of GPU back ends: weights uploaded once, one arena, a graph for every segment of launches."""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.abi.gpu_code import GpuCode, GpuLaunch
from tilec.abi.manifest import CallInput, Manifest, TensorSpec
from tilec.errors import ArtifactError
from tilec.ir.types import element_bytes, numpy_dtype
from tilec.runtime.addressed import Copy
from tilec.runtime.device_array import DeviceArray
from tilec.runtime.gpu.block import Block
from tilec.runtime.gpu.driver import Driver
from tilec.runtime.gpu.evaluate_numbers import NumbersEvaluator
from tilec.runtime.gpu.launches import Loaded, Places, launch
from tilec.runtime.gpu.streamed_run import StreamedRun
from tilec.runtime.memory import map_weights
from tilec.runtime.sizes import bound_shape
from tilec.runtime.streamed import RunOnStream
from tilec.runtime.times import Times

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALIGNMENT = 256
"""Bytes at whose multiples constants begin, as memory does that a driver allocates."""

KEPT = 8
"""Sets of sizes whose graphs a run keeps."""

POISON = 0xFF


def load(folder: Path, manifest: Manifest, _threads: int, _pin: bool, check: bool) -> "GpuExecutor":
    """Open a model on the GPU of this machine; a `tilec.runtime.executor.Loader`.

    Raises UnavailableError without a driver or a device.
    """
    from tilec.runtime.gpu.cuda import CudaDriver
    from tilec.runtime.gpu.hip import HipDriver

    processor = manifest.gpu.processor if manifest.gpu is not None else ""
    driver = HipDriver() if processor.startswith("gfx") else CudaDriver()
    return GpuExecutor(folder, manifest, driver, check)


class GpuExecutor:
    """A module and weights on a device, and runs that wait for a caller. They share a stream: one at a time uses it.
    Runs on the streams of callers are asked for one after another, too."""

    alignment = ALIGNMENT

    def __init__(self, folder: Path, manifest: Manifest, driver: Driver, check: bool = False) -> None:
        if manifest.gpu is None:
            raise ArtifactError("the manifest has no kernels of a GPU", str(folder), "Run `tilec codegen` again.")
        self.driver = driver
        self.manifest = manifest
        self.code: GpuCode = manifest.gpu
        module = driver.load(manifest.gpu, folder)
        constants = self._upload([map_weights(folder, file, check) for file in manifest.weights])
        self.model = Loaded(driver, manifest, manifest.gpu, module, constants)
        self.evaluate = NumbersEvaluator(manifest.sizes) if manifest.sizes is not None else _no_numbers
        self._waiting: list[GpuRun] = []
        self._streamed: dict[int, StreamedRun] = {}
        self.stream = threading.Lock()

    def _upload(self, files: "Sequence[NDArray[np.uint8]]") -> list[int]:
        """Copy the constants, each to where vectors of its elements may begin, as they may not in a file."""
        constants = self.manifest.constants
        offsets = list(accumulate((-(-each.bytes // ALIGNMENT) * ALIGNMENT for each in constants), initial=0))
        block = Block(self.driver, self, offsets[-1]).address
        for each, offset in zip(constants, offsets, strict=False):
            self.driver.upload(block + offset, files[each.file][each.offset : each.offset + each.bytes])
        return [block + offset for offset in offsets[:-1]]

    @property
    def takes_device_arrays(self) -> bool:
        """Whether inputs may lie on the device: where no part runs on the host."""
        return not self.manifest.calls

    @property
    def device_name(self) -> str:
        """The GPU, in its driver's words."""
        return self.driver.name

    def to_device(self, array: "NDArray[Any]") -> DeviceArray:
        """A copy of an array on the device, freed with it."""
        owner = _Owner()
        place, given = Block(self.driver, owner, array.nbytes).address, np.ascontiguousarray(array)
        with self.stream:
            self.driver.upload(place, given)
            self.driver.synchronize()
        return DeviceArray(place, array.shape, array.dtype, owner)

    def to_host(self, array: DeviceArray) -> "NDArray[Any]":
        """A copy of an array on the device, after everything before."""
        copy: NDArray[Any] = np.empty(array.shape, array.dtype)
        with self.stream:
            self.driver.download(copy, array.address)
        return copy

    def take_run(self) -> "GpuRun":
        """Working memory that no other run uses."""
        with suppress(IndexError):
            return self._waiting.pop()
        return GpuRun(self)

    def give_run(self, run: "GpuRun") -> None:
        """Let the next caller have it; arrays of this one are let go."""
        run.release()
        self._waiting.append(run)

    def streamed(self, numbers: "NDArray[np.int64] | None", copies: Sequence[Copy]) -> RunOnStream:
        """Runs on streams of the caller, at the sizes that the numbers say, behind copies of states that lie apart."""
        known = np.zeros(0, np.int64) if numbers is None else numbers
        with self.stream:
            self.driver.synchronize()  # constants are there before another stream reads them

        def run(addresses: Sequence[int], stream: int) -> None:
            with self.stream:
                if stream not in self._streamed:
                    self._streamed[stream] = StreamedRun(self.model, stream)
                self._streamed[stream].run(known, addresses, copies)

        return run


class _Owner:
    """Keeps memory of the device."""


def _no_numbers(_numbers: "NDArray[np.int64]", _part: int) -> None:
    """A model whose sizes are known has none."""


class GpuRun:
    """Arenas, a buffer for every tensor that crosses the border of the device, and a graph for every segment that has
    run at some sizes. What was bound is uploaded before the next launches; outputs come back behind those that write
    them. Arrays of the device are read and written in place when they come a second time, for a graph has its places.
    A state is one buffer, before and after. In a model with symbols memory grows with the sizes."""

    def __init__(self, executor: GpuExecutor) -> None:
        manifest = executor.manifest
        results = [result.tensor for call in manifest.calls for result in call.outputs]
        specs = [*manifest.inputs, *results, *manifest.outputs]
        self._executor, self._driver = executor, executor.driver
        self._first_output = len(manifest.inputs) + len(results)
        sizes = manifest.sizes
        known = [_bytes(spec) if isinstance(spec, TensorSpec) and sizes is None else 0 for spec in specs]
        self._states = {self._first_output + made: given for given, made in manifest.states}
        self._tensors = [Block(self._driver, self, size) for size in known[: self._first_output]]
        for number in range(self._first_output, len(specs)):
            given = self._states.get(number)
            self._tensors.append(Block(self._driver, self, known[number]) if given is None else self._tensors[given])
        arenas = [manifest.arena_bytes] if sizes is None else [0] * len(sizes.arenas)
        self._arenas = [Block(self._driver, self, size) for size in arenas]
        self.numbers = np.zeros(0 if sizes is None else len(sizes.numbers), np.int64)
        self._bound: list[Any] = [None] * len(specs)
        self._unsent: set[int] = set()
        self._before = [0] * len(specs)
        self._in_place = [0] * len(specs)
        self._graphs: dict[tuple[int, bytes, tuple[int, ...]], Any] = {}

    def bind(self, first: int, arrays: Sequence[Any]) -> None:
        """Take arrays of the host, or of the device, from tensor number `first` on."""
        for number, array in enumerate(arrays, first):
            self._bound[number] = array
            if isinstance(array, np.ndarray | DeviceArray):
                self._grow(self._tensors[number], array.nbytes)
            if number < self._first_output and isinstance(array, np.ndarray | DeviceArray):
                self._unsent.add(number)

    def release(self) -> None:
        """Hold none of the caller's arrays."""
        self._bound = [None] * len(self._bound)

    def resize(self, part: int) -> None:
        """Let the arenas whose sizes are among the numbers of a part be large enough."""
        sizes = self._executor.manifest.sizes
        assert sizes is not None
        for block, position in zip(self._arenas, sizes.arenas, strict=True):
            if sizes.part(position) == part:
                self._grow(block, int(self.numbers[position]))

    def _grow(self, block: Block, size: int) -> None:
        """Let a block be large enough; what was recorded on the one before is void."""
        if block.size < size:
            block.grow(max(size, block.size * 3 // 2))
            self._graphs.clear()

    def launch(self, segment: int, times: Times | None) -> None:
        """Run a segment to its end, as a graph; one launch after another where times are wanted."""
        launches = self._executor.code.segment(segment)
        with self._executor.stream:
            self._in_place = self._places_of_arrays()
            self._send()
            if times is not None:
                self._timed(segment, launches, times)
            elif launches:
                self._driver.launch_graph(self._graph(segment, launches))
            self._fetch(launches)

    def step(self, segment: int, launch: int) -> None:
        """Run one launch of a segment alone, on what the arrays of the host hold now."""
        chosen = self._executor.code.segment(segment)[launch]
        self._unsent = {number for number, array in enumerate(self._bound) if isinstance(array, np.ndarray)}
        with self._executor.stream:
            self._in_place = [0] * len(self._bound)
            self._send()
            self._launch(chosen)
            self._fetch([chosen])

    def poison(self) -> None:
        """Fill the arena with bytes that are NaN in every floating-point type."""
        with self._executor.stream:
            for arena in self._arenas:
                self._driver.fill(arena.address, POISON, arena.size)

    def operand(self, spec: CallInput) -> Any:
        """A copy of what a call reads from the arena or the constants."""
        assert spec.tensor is not None
        shape = bound_shape(spec.tensor, self._executor.manifest.sizes, self.numbers)
        array: NDArray[Any] = np.empty(shape, numpy_dtype(spec.tensor.ttype))
        with self._executor.stream:
            self._driver.download(array, self._address(spec))
        return array

    def replace(self, spec: CallInput, array: "NDArray[Any]") -> None:
        """Let a place of the arena hold what a copy of it holds now."""
        with self._executor.stream:
            self._driver.upload(self._address(spec), array)

    def _address(self, spec: CallInput) -> int:
        if spec.space == "constant":
            return self._executor.model.constants[spec.at]
        if spec.offset is None:
            return self._arenas[0].address + spec.at
        return self._arenas[spec.at].address + int(self.numbers[spec.offset])

    def _places_of_arrays(self) -> list[int]:
        """The address of every tensor that is read and written in place, 0 of others: arrays of the device that are
        where those of the launch before were and begin as its memory does, none if an output shares memory, but with
        the state that it is, or if a state lies apart from what it was."""
        given = [each if isinstance(each, DeviceArray) else None for each in self._bound]
        places = [0 if each is None or each.address % ALIGNMENT else each.address for each in given]
        before, self._before = self._before, places
        ranges = [None if each is None else range(each.address, each.address + each.nbytes) for each in given]
        shared = any(
            _overlap(ranges[output], other)
            for output in range(self._first_output, len(ranges))
            for number, other in enumerate(ranges)
            if number not in (output, self._states.get(output))
        )
        stay = [now if now == was and not shared else 0 for now, was in zip(places, before, strict=True)]
        for made, state in self._states.items():
            if stay[made] != stay[state]:
                stay[made], stay[state] = 0, 0
        return stay

    def _send(self) -> None:
        for number in sorted(self._unsent):
            given = self._bound[number]
            if self._in_place[number]:
                continue
            if isinstance(given, DeviceArray):
                self._driver.copy(self._tensors[number].address, given.address, given.nbytes)
            else:
                self._driver.upload(self._tensors[number].address, given)
        self._unsent.clear()

    def _fetch(self, launches: Sequence[GpuLaunch]) -> None:
        """Bring back the outputs that launches write."""
        written = {a.index for each in launches for a in each.arguments if a.space == "output" and a.writes}
        for number in sorted(written):
            target, place = self._bound[self._first_output + number], self._place(self._first_output + number)
            if self._in_place[self._first_output + number]:
                continue
            if isinstance(target, DeviceArray):
                self._driver.copy(target.address, place, target.nbytes)
            else:
                self._driver.download(target, place)
        self._driver.synchronize()

    def _graph(self, segment: int, launches: Sequence[GpuLaunch]) -> Any:
        """The launches of a segment as a graph; graphs of the last few sizes are kept."""
        key = segment, self.numbers.tobytes(), tuple(self._in_place)
        graph = self._graphs.pop(key, None) or self._recorded(launches)
        self._graphs[key] = graph
        if len(self._graphs) > KEPT * len(self._executor.manifest.segments):
            del self._graphs[next(iter(self._graphs))]
        return graph

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

    def _launch(self, what: GpuLaunch) -> None:
        first = self._first_output
        inputs, outputs = (list(map(self._place, each)) for each in (range(first), range(first, len(self._bound))))
        places = Places(inputs, outputs, [arena.address for arena in self._arenas])
        launch(self._executor.model, self._driver, what, places, self.numbers)

    def _place(self, number: int) -> int:
        """The address of a tensor."""
        return self._in_place[number] or self._tensors[number].address


def _overlap(one: range | None, other: range | None) -> bool:
    return one is not None and other is not None and max(one.start, other.start) < min(one.stop, other.stop)


def _bytes(spec: TensorSpec) -> int:
    return prod(spec.bound_shape) * element_bytes(spec.ttype)
