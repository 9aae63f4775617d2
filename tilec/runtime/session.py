"""A loaded model: checks feeds, runs segments of compiled code and calls of onnxruntime in turn, returns outputs."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from tilec.abi.manifest import (
    CallInput,
    DefaultSpec,
    IndexSpec,
    Manifest,
    OpaqueSpec,
    PortSpec,
    TensorSpec,
    read_manifest,
)
from tilec.abi.shape_program import SymbolSpec
from tilec.errors import UnavailableError, UsageError
from tilec.runtime.addressed import AddressedCall, AddressedExecutor, Shape, state_copies, updating
from tilec.runtime.array_call import ArrayCall
from tilec.runtime.device_array import DeviceArray
from tilec.runtime.executor import (
    DeviceExecutor,
    Executor,
    RemoteRun,
    Run,
    SizedExecutor,
    SizedRun,
    SteppableRun,
    loader_of,
)
from tilec.runtime.fallback import Fallback
from tilec.runtime.feeds import (
    check_indices,
    copy_result,
    gather_inputs,
    gather_outputs,
    output_array,
    same_memory,
    without_defaults,
)
from tilec.runtime.recycled_memory import RecycledMemory
from tilec.runtime.serial_loop import LoopRun
from tilec.runtime.sized_calls import SizedCalls
from tilec.runtime.sizes import KEPT, BoundPorts, SizeReader
from tilec.runtime.streamed import StreamedCall, StreamedExecutor
from tilec.runtime.times import Span, Times
from tilec.spec.cpus import usable_cpus

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

THREADS_VARIABLE = "TILEC_THREADS"


Memory = Callable[[CallInput], Any]
"""The value at a place of a run's memory, in place."""


class Observer(Protocol):
    """Sees the memory of a run around each launch, which is named by its group."""

    def before(self, group: str, memory: Memory) -> None:
        """All launches before this one are done."""

    def after(self, group: str, memory: Memory) -> None:
        """This launch is done."""


def load(
    folder: str | os.PathLike[str], *, threads: int | None = None, pin: bool = False, check: bool = False
) -> "Session":
    """The model that was compiled into `folder`, ready to run.

    `threads` that take part in one run, the caller included; default: TILEC_THREADS, else what the model was
    compiled for, else one per usable CPU, and never more than those unless asked here. `pin` binds each
    worker to a CPU. `check` compares the sha256 of the weights too, which reads all of them; the library's
    is always compared. Raises UsageError, ArtifactError or UnavailableError.
    """
    place = Path(folder)
    manifest = read_manifest(place)
    count = _threads(threads, manifest)
    executor = loader_of(manifest, str(place))(place, manifest, count, pin, check)
    return Session(manifest, place, executor, count)


class Session:
    """A compiled model in memory. `run` may be called from any number of threads at the same time, in a model with
    symbols at any sizes that it allows."""

    def __init__(self, manifest: Manifest, folder: Path, executor: Executor, threads: int) -> None:
        if manifest.sizes is not None and not isinstance(executor, SizedExecutor):
            raise UnavailableError(f"{manifest.loader} runs no model with symbols", str(folder))
        evaluate = executor.evaluate if isinstance(executor, SizedExecutor) and manifest.sizes is not None else None
        self._reader = SizeReader(manifest, evaluate)
        self._manifest = manifest
        self._executor = executor
        self._device = executor if isinstance(executor, DeviceExecutor) else None
        self._on_device = self._device is not None and self._device.takes_device_arrays
        self.threads = threads
        self._taken = dict(manifest.taken)
        self._memory = RecycledMemory()
        self._array_calls: dict[tuple[Shape, ...], ArrayCall | None] = {}
        self._sized_calls = (
            SizedCalls(manifest, evaluate, executor, self._memory.array)
            if evaluate is not None and isinstance(executor, AddressedExecutor) and self._is_whole(manifest)
            else None
        )
        self._calls = [None if call.loop else Fallback(folder, call, threads) for call in manifest.calls]

    @property
    def inputs(self) -> tuple[PortSpec, ...]:
        """The inputs that `run` expects: names, types, shapes; extents that vary are texts over symbols."""
        return self._manifest.inputs

    @property
    def defaults(self) -> tuple[DefaultSpec, ...]:
        """Further inputs, whose values were compiled in: `run` takes these values and no others."""
        return self._manifest.defaults

    @property
    def outputs(self) -> tuple[PortSpec, ...]:
        """The outputs that `run` returns, in this order."""
        return self._manifest.outputs

    @property
    def states(self) -> dict[str, str]:
        """Inputs that are states -> the outputs that are the same memory updated in place: `out` may name the input's
        own array for these."""
        manifest = self._manifest
        return {manifest.inputs[given].name: manifest.outputs[made].name for given, made in manifest.states}

    @property
    def symbols(self) -> tuple[SymbolSpec, ...]:
        """The sizes that vary from run to run, with their ranges."""
        return () if self._manifest.sizes is None else self._manifest.sizes.symbols

    @property
    def runs_on(self) -> str:
        """The name of the GPU that runs the model; `host` where this machine's CPU does."""
        return "host" if self._device is None else self._device.device_name

    def to_device(self, arrays: "Mapping[str, NDArray[Any]]") -> dict[str, Any]:
        """Copies of inputs or outputs by name that a model reads and writes in place: on its GPU, where it takes them
        there, as objects with `__cuda_array_interface__`; the same arrays anywhere else."""
        device = self._device if self._on_device else None
        return dict(arrays) if device is None else {name: device.to_device(each) for name, each in arrays.items()}

    def run(
        self, feeds: "Mapping[str, ArrayLike]", out: "Mapping[str, NDArray[Any]] | None" = None
    ) -> "dict[str, NDArray[Any]]":
        """Run once and return the outputs by name.

        `feeds` maps every input to an array of its type and shape, in any memory layout. Outputs named in
        `out` are written there and returned as the same objects, the others are fresh 64-byte aligned arrays.
        The result does not depend on the number of threads. A model on a GPU takes arrays that lie there, in `feeds`
        and in `out`: objects with `__cuda_array_interface__` or DLPack, in place from their second run on.
        Raises UsageError for feeds that do not fit, TilecError when a part that runs on onnxruntime fails.
        """
        shapes = self._reader.shapes(feeds)
        call = self._array_calls.get(shapes)
        if call is None and self._sized_calls is not None and shapes not in self._array_calls:
            call = self._keep(shapes, self._sized_calls.at(shapes))
        results = None if call is None else call.run(feeds, out or {})
        return self._run_prepared(feeds, out or {}) if results is None else results

    def bound(
        self, feeds: "Mapping[str, ArrayLike]", out: "Mapping[str, NDArray[Any]]"
    ) -> "Callable[[], dict[str, NDArray[Any]]]":
        """`run` on the same arrays as often as it is called, for callers that fill and read them in place: what can be
        looked up and checked of them before is. Raises what `run` raises."""
        self._run_prepared(feeds, out)
        call = self._array_calls.get(self._reader.shapes(feeds))
        again = None if call is None else call.bound(feeds, out)
        return partial(self.run, feeds, out) if again is None else again

    def addressed(self, shapes: "Sequence[Shape]") -> AddressedCall | None:
        """The model for inputs of these shapes as a call on addresses; None where parts run on onnxruntime or the back
        end takes none. Raises UsageError for shapes that do not fit."""
        ports = self._ports(shapes)
        return self._addressed(ports)

    def streamed(self, shapes: "Sequence[Shape]") -> StreamedCall | None:
        """The model for inputs of these shapes as a call on addresses of its GPU, on a stream of the caller; None where
        parts run on onnxruntime or the back end has no streams. Raises UsageError for shapes that do not fit."""
        ports = self._ports(shapes)
        executor = self._executor
        if self._is_whole(ports) and isinstance(executor, StreamedExecutor):
            copies = state_copies(ports, self._manifest.states)
            return StreamedCall(executor.streamed(ports.numbers, copies), ports, executor.alignment)
        return None

    def traced(
        self, feeds: "Mapping[str, ArrayLike]", out: "Mapping[str, NDArray[Any]] | None" = None
    ) -> tuple[Span, ...]:
        """Run once like `run`; returns when every group and every call of onnxruntime began and ended, in the order in
        which they began. Two readings of the clock for each range of tasks that a thread takes are all that it adds."""
        times = Times(self._manifest.segments)
        self._run_once(feeds, out or {}, times)
        return times.spans

    def stepwise(self, feeds: "Mapping[str, ArrayLike]", observer: "Observer") -> None:
        """Run once with one launch at a time: the observer sees the memory before and after each.

        A run as a whole comes first, on the same memory, which is filled with NaN between the two. Raises
        UnavailableError when the back end only runs whole segments.
        """
        arrays = self._gather(feeds, {})
        run = self._executor.take_run()
        try:
            if not isinstance(run, SteppableRun):
                raise UnavailableError(f"{self._manifest.loader} runs no launch alone")
            self._start(run, arrays, lambda segment, _memory: run.launch(segment, None))
            run.poison()

            def each(segment: int, memory: Memory) -> None:
                for number, group in enumerate(self._manifest.segments[segment].groups):
                    if self._has_tasks(_sized(run, arrays.ports), segment, number):
                        with _written_back(run, memory) as seen:
                            observer.before(group, seen)
                        run.step(segment, number)
                        observer.after(group, memory)

            self._start(run, arrays, each)
        finally:
            self._executor.give_run(run)

    def _ports(self, shapes: "Sequence[Shape]") -> BoundPorts:
        """The ports for inputs of these shapes. Raises UsageError for shapes that do not fit."""
        ports = self._reader.bind_shapes(tuple(shapes))
        for spec, shape in zip(ports.inputs, shapes, strict=True):
            if isinstance(spec, TensorSpec) and spec.shape != shape:
                raise UsageError(f"input {spec.name!r} has shape {list(shape)}, the model has {list(spec.shape)}")
        return ports

    def _is_whole(self, ports: "BoundPorts | Manifest") -> bool:
        """Whether compiled code alone runs the model, on tensors."""
        return not self._manifest.calls and not any(
            isinstance(port, OpaqueSpec) for port in (*ports.inputs, *ports.outputs)
        )

    def _addressed(self, ports: BoundPorts) -> AddressedCall | None:
        if not self._is_whole(ports) or not isinstance(self._executor, AddressedExecutor):
            return None
        run, states = self._executor.addressed(ports.numbers), self._manifest.states
        return None if run is None else AddressedCall(updating(run, state_copies(ports, states)), ports, None, states)

    def _run_prepared(
        self, feeds: "Mapping[str, ArrayLike]", out: "Mapping[str, NDArray[Any]]"
    ) -> "dict[str, NDArray[Any]]":
        """Run, and let the next run at these shapes take a short way, if there is one."""
        results = self._run_once(feeds, out, None)
        shapes = self._reader.shapes(feeds)
        if self._array_calls.get(shapes) is None:
            ports = self._reader.bind_shapes(shapes)
            call = self._addressed(ports)
            self._keep(shapes, None if call is None else ArrayCall.of(call, ports, self._memory.array))
        return results

    def _keep(self, shapes: tuple[Shape, ...], call: ArrayCall | None) -> ArrayCall | None:
        """The call on arrays of these shapes, for the next run at them."""
        if len(self._array_calls) >= KEPT:
            self._array_calls.clear()
        self._array_calls[shapes] = call
        return call

    def _run_once(
        self, feeds: "Mapping[str, ArrayLike]", out: "Mapping[str, NDArray[Any]]", times: Times | None
    ) -> "dict[str, NDArray[Any]]":
        manifest = self._manifest
        arrays = self._gather(feeds, out)
        outputs = arrays.outputs
        run = self._executor.take_run()
        try:
            results = self._start(run, arrays, lambda segment, _memory: run.launch(segment, times), times)
        finally:
            self._executor.give_run(run)
        for number, taken in self._taken.items():
            outputs[number] = results[taken]
        result = {}
        for spec, array in zip(manifest.outputs, outputs, strict=True):
            asked = out.get(spec.name)
            if asked is not None and asked is not array and not isinstance(array, DeviceArray):
                copy_result(spec, array, asked)
            result[spec.name] = array if asked is None else asked
        return result

    def _gather(self, feeds: "Mapping[str, ArrayLike]", out: "Mapping[str, NDArray[Any]]") -> "_Arrays":
        """The arrays of one run. Raises UsageError for feeds that do not fit."""
        feeds = without_defaults(self._manifest.defaults, feeds)
        ports = self._reader.bind(feeds)
        inputs = gather_inputs(ports.inputs, feeds, self._on_device)
        if ports.ranges:
            check_indices(ports.ranges, ports.inputs, self._seen(ports.ranges, inputs))
        unmade = ports.later.union(self._taken) if ports.later else self._taken
        states = {made: given for given, made in self._manifest.states}
        outputs = gather_outputs(ports.outputs, out, inputs, unmade, self._on_device, self._memory.array, states)
        for made, given in states.items():
            on_host = not any(isinstance(each, DeviceArray) for each in (outputs[made], inputs[given]))
            if on_host and not same_memory(outputs[made], inputs[given]):
                outputs[made][...] = inputs[given]
        return _Arrays(ports, out, inputs, list(outputs))

    def _seen(self, ranges: Iterable[IndexSpec], inputs: list[Any]) -> list[Any]:
        """The inputs, those that have ranges on the host."""
        seen = list(inputs)
        for number in {each.input for each in ranges}:
            if self._device is not None and isinstance(seen[number], DeviceArray):
                seen[number] = self._device.to_host(seen[number])
        return seen

    def _has_tasks(self, run: SizedRun | None, segment: int, launch: int) -> bool:
        """Whether a launch has tasks at the sizes of a run: of the variants of a group one has."""
        sizes = self._manifest.sizes
        return run is None or sizes is None or bool(run.numbers[sizes.tasks[segment][launch]])

    def _start(
        self,
        run: Run,
        arrays: "_Arrays",
        launch: "Callable[[int, Memory], None]",
        times: Times | None = None,
    ) -> list[Any]:
        """Run on these arrays, each segment by `launch`; returns the results of the calls when the outputs are
        complete, and notes the `times` of calls if somebody wants them."""
        inputs, outputs = arrays.inputs, arrays.outputs
        results: list[Any] = []
        spaces = {"input": inputs, "output": outputs, "result": results}

        def memory(place: CallInput) -> Any:
            return spaces[place.space][place.at] if place.space in spaces else run.operand(place)

        run.bind(0, inputs)
        run.bind(len(inputs) + self._manifest.results, outputs)
        sized, numbers = _sized(run, arrays.ports), arrays.ports.numbers
        if sized is not None and numbers is not None:
            sized.numbers[:] = numbers
            sized.resize(0)
        launch(0, memory)
        loops: list[tuple[int, int, LoopRun]] = []  # segment of the body, results before it, values
        number = 1
        while number <= len(self._calls):
            spec, call = self._manifest.calls[number - 1], self._calls[number - 1]
            values = [memory(place) for place in spec.inputs]
            if spec.loop == "end":
                body, known, loop = loops[-1]
                if loop.advance(values):
                    del results[known:]
                    launch(body, memory)
                    number = body + 1
                    continue
                added = loops.pop()[2].results
            elif call is None:
                loop = LoopRun(values, spec.carried)
                added = loop.operands
                loops.append((number, len(results) + len(added), loop))
            else:
                with times.call(spec.model.file) if times is not None else nullcontext():
                    added = call.run(values)
            run.bind(len(inputs) + len(results), added)
            results += added
            if sized is not None:
                self._complete(sized, number, arrays, results)
            launch(number, memory)
            number += 1
        return results

    def _complete(self, run: SizedRun, part: int, arrays: "_Arrays", results: list[Any]) -> None:
        """Compute the numbers that the results of a call make known, and make room for what they are the sizes of."""
        self._reader.complete(run.numbers, part, results)
        check_indices(self._reader.ranges(run.numbers, part), arrays.ports.inputs, arrays.inputs)
        run.resize(part)
        if not arrays.ports.later:
            return
        for number, spec in self._reader.outputs(run.numbers, part):
            if number not in self._taken and isinstance(spec, TensorSpec):
                others = (*arrays.inputs, *arrays.outputs, *results)
                array = output_array(spec, arrays.out.get(spec.name), others, self._memory.array)
                arrays.outputs[number] = array
                run.bind(len(arrays.inputs) + self._manifest.results + number, [array])


@dataclass(frozen=True)
class _Arrays:
    """The arrays of one run: those that the caller wants written, and what is read and computed into. Outputs that a
    call makes, or tells the shape of, are None at first."""

    ports: BoundPorts
    out: "Mapping[str, NDArray[Any]]"
    inputs: list[Any]
    outputs: list[Any]


@contextmanager
def _written_back(run: Run, memory: Memory) -> Iterator[Memory]:
    """The memory of a run whose arrays may be changed where they are handed out: copies go back to where they are."""
    if not isinstance(run, RemoteRun):
        yield memory
        return
    handed: list[tuple[CallInput, Any]] = []

    def seen(place: CallInput) -> Any:
        value = memory(place)
        if place.space == "arena":
            handed.append((place, value))
        return value

    yield seen
    for place, value in handed:
        run.replace(place, value)


def _sized(run: Run, ports: BoundPorts) -> SizedRun | None:
    """The run of a model with symbols, None for any other; the session has checked its executor."""
    return None if ports.numbers is None else cast("SizedRun", run)


def _threads(asked: int | None, manifest: Manifest) -> int:
    """The number of threads of a session."""
    usable = len(usable_cpus())
    text = os.environ.get(THREADS_VARIABLE)
    if asked is None and text:
        if not text.isdigit():
            raise UsageError(f"{THREADS_VARIABLE} is {text!r}", hint="Set it to a number of threads.")
        asked = int(text)
    threads = min(manifest.threads or usable, usable) if asked is None else asked
    if threads < 1:
        raise UsageError(f"{threads} threads cannot run anything", hint="Ask for 1 or more.")
    return threads
