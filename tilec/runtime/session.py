"""A loaded model: checks feeds, gives every call an arena of its own, runs, returns the outputs."""

import os
import weakref
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.abi import job_layout
from tilec.abi.alignment import ALIGNMENT
from tilec.abi.manifest import CallInput, Manifest, PortSpec, read_manifest
from tilec.errors import UsageError
from tilec.ir.types import numpy_dtype
from tilec.runtime.fallback import Fallback
from tilec.runtime.feeds import copy_result, gather_inputs, gather_outputs
from tilec.runtime.library import Library, load_library
from tilec.runtime.memory import address, aligned_block, constant_address, map_weights
from tilec.runtime.pool import Pool, forks, pool_of
from tilec.runtime.times import Span, Times
from tilec.spec.cpus import usable_cpus

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

THREADS_VARIABLE = "TILEC_THREADS"


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
    library = load_library(place, manifest.library, manifest.interface) if manifest.library else None
    return Session(manifest, place, library, _threads(threads, manifest), pin, check)


class Session:
    """A compiled model in memory. `run` may be called from any number of threads at the same time."""

    def __init__(
        self,
        manifest: Manifest,
        folder: Path,
        library: Library | None,
        threads: int,
        pin: bool = False,
        check: bool = False,
    ) -> None:
        self._manifest = manifest
        self._library = library
        self._weights = [map_weights(folder, weights, check) for weights in manifest.weights]
        self.threads = threads
        self._pin = pin
        self._taken = dict(manifest.taken)
        self._calls = [Fallback(folder, call, threads) for call in manifest.calls]
        self._homes: dict[int, tuple[Pool | None, list[_Run]]] = {}

    @property
    def inputs(self) -> tuple[PortSpec, ...]:
        """The inputs that `run` expects: names, types, shapes."""
        return self._manifest.inputs

    @property
    def outputs(self) -> tuple[PortSpec, ...]:
        """The outputs that `run` returns, in this order."""
        return self._manifest.outputs

    def run(
        self, feeds: "Mapping[str, ArrayLike]", out: "Mapping[str, NDArray[Any]] | None" = None
    ) -> "dict[str, NDArray[Any]]":
        """Run once and return the outputs by name.

        `feeds` maps every input to an array of its type and shape, in any memory layout. Outputs named in
        `out` are written there and returned as the same objects, the others are fresh 64-byte aligned arrays.
        The result does not depend on the number of threads. Raises UsageError for feeds that do not fit, TilecError
        when a part that runs on onnxruntime fails.
        """
        return self._run_once(feeds, out or {}, None)

    def traced(
        self, feeds: "Mapping[str, ArrayLike]", out: "Mapping[str, NDArray[Any]] | None" = None
    ) -> tuple[Span, ...]:
        """Run once like `run`; returns when every group and every call of onnxruntime began and ended, in the order in
        which they began. Two readings of the clock for each range of tasks that a thread takes are all that it adds."""
        times = Times(self._manifest.segments)
        self._run_once(feeds, out or {}, times)
        return times.spans

    def _run_once(
        self, feeds: "Mapping[str, ArrayLike]", out: "Mapping[str, NDArray[Any]]", times: Times | None
    ) -> "dict[str, NDArray[Any]]":
        manifest = self._manifest
        inputs = gather_inputs(manifest.inputs, feeds)
        outputs: list[Any] = list(gather_outputs(manifest.outputs, out, inputs, self._taken))
        pool, waiting = self._home()
        run = self._take_run(pool, waiting)
        try:
            results = run.start(inputs, outputs, self._calls, times)
        finally:
            waiting.append(run)
        for number, taken in self._taken.items():
            outputs[number] = results[taken]
        result = {}
        for spec, array in zip(manifest.outputs, outputs, strict=True):
            asked = out.get(spec.name)
            if asked is not None and asked is not array:
                copy_result(spec, array, asked)
            result[spec.name] = array if asked is None else asked
        return result

    def _home(self) -> "tuple[Pool | None, list[_Run]]":
        """This process's workers and the working memory that waits for a call; both start anew after a fork."""
        number = forks()
        home = self._homes.get(number)
        if home is None:
            pool = pool_of(self.threads, self._pin, self._library) if self._library else None
            home = self._homes.setdefault(number, (pool, []))
        return home

    def _take_run(self, pool: Pool | None, waiting: "list[_Run]") -> "_Run":
        """Working memory that no other call uses."""
        for _ in range(len(waiting)):
            try:
                run = waiting.pop()
            except IndexError:
                break
            if run.idle:
                return run
            waiting.insert(0, run)
        run = _Run(self._manifest, self._library, pool, self._weights)
        if pool is not None:
            for job in run.jobs:
                weakref.finalize(self, pool.give_job, job).atexit = False
        return run


class _Run:
    """What one call at a time needs: a job for each segment, a pointer table, an arena and the threads' scratch."""

    def __init__(
        self, manifest: Manifest, library: Library | None, pool: Pool | None, weights: "list[NDArray[np.uint8]]"
    ) -> None:
        self._manifest = manifest
        self._library = library
        self._weights = weights
        stride = -(-manifest.scratch_bytes // ALIGNMENT) * ALIGNMENT
        self._arena = aligned_block(manifest.arena_bytes)
        self._scratch = aligned_block(stride * (pool.threads if pool else 0))
        constants = [constant_address(weights, constant) for constant in manifest.constants]
        tensors = len(manifest.inputs) + manifest.results + len(manifest.outputs)
        self._table = np.array([0] * tensors + constants + [address(self._arena)], np.int64)
        self._jobs: list[NDArray[np.uint8] | None] = []
        for number, segment in enumerate(manifest.segments):
            if segment.launches == 0 or pool is None:
                self._jobs.append(None)
                continue
            job = pool.take_job(segment.launches, segment.width)
            words = job.view(np.int64)
            words[job_layout.JOB_TABLE // 8] = address(self._table)
            words[job_layout.JOB_SCRATCH // 8] = address(self._scratch)
            words[job_layout.JOB_SCRATCH_STRIDE // 8] = stride
            words[job_layout.JOB_SEGMENT // 8] = number
            self._jobs.append(job)
        self._addresses = [None if job is None else address(job) for job in self._jobs]

    @property
    def jobs(self) -> "list[NDArray[np.uint8]]":
        """The job blocks."""
        return [job for job in self._jobs if job is not None]

    @property
    def idle(self) -> bool:
        """Whether the last helper has left."""
        return not any(job.view(np.int64)[job_layout.JOB_STATE // 8] for job in self.jobs)

    def start(
        self, inputs: list[Any], outputs: list[Any], calls: Sequence[Fallback], times: Times | None = None
    ) -> list[Any]:
        """Run on these arrays; returns the results of the calls when the outputs are complete, and notes the `times`
        if somebody wants them."""
        results: list[Any] = []
        first_output = len(inputs) + self._manifest.results
        self._point(0, inputs)
        self._point(first_output, outputs)
        for number, job in enumerate(self._addresses):
            if number > 0:
                call = self._manifest.calls[number - 1]
                read = [self._value(spec, inputs, outputs, results) for spec in call.inputs]
                with times.call(call.model.file) if times is not None else nullcontext():
                    made = calls[number - 1].run(read)
                self._point(len(inputs) + len(results), made)
                results += made
            if job is not None and self._library is not None:
                self._ask(number, times)
                self._library.run(job)
        return results

    def _ask(self, number: int, times: Times | None) -> None:
        """Say where the times of a segment are wanted, if they are."""
        job = self._jobs[number]
        if job is not None:
            job.view(np.int64)[job_layout.JOB_TIMES // 8] = 0 if times is None else address(times.of(number))

    def _point(self, first: int, arrays: list[Any]) -> None:
        """Enter arrays into the table from position `first`; what compiled code does not touch has no place there."""
        for number, array in enumerate(arrays, first):
            if isinstance(array, np.ndarray):
                self._table[number] = address(array)

    def _value(self, spec: CallInput, inputs: list[Any], outputs: list[Any], results: list[Any]) -> Any:
        """What a call reads."""
        if spec.space in ("input", "output", "result"):
            return {"input": inputs, "output": outputs, "result": results}[spec.space][spec.at]
        tensor = spec.tensor
        assert tensor is not None
        block, offset = self._arena, spec.at
        if spec.space == "constant":
            constant = self._manifest.constants[spec.at]
            block, offset = self._weights[constant.file], constant.offset
        return np.ndarray(tensor.shape, numpy_dtype(tensor.ttype), block, offset)


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
