"""A loaded model: checks feeds, gives every call an arena of its own, runs, returns the outputs."""

import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.errors import UsageError
from tilec.runtime import layout
from tilec.runtime.feeds import gather_inputs, gather_outputs
from tilec.runtime.library import Library, load_library
from tilec.runtime.manifest import Manifest, TensorSpec, read_manifest
from tilec.runtime.memory import ALIGNMENT, address, aligned_block, constant_address, map_weights
from tilec.runtime.pool import Pool, forks, pool_of

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
    return Session(manifest, place, load_library(place, manifest.library), _threads(threads, manifest), pin, check)


class Session:
    """A compiled model in memory. `run` may be called from any number of threads at the same time."""

    def __init__(
        self,
        manifest: Manifest,
        folder: Path,
        library: Library,
        threads: int,
        pin: bool = False,
        check: bool = False,
    ) -> None:
        self._manifest = manifest
        self._library = library
        self._weights = [map_weights(folder, weights, check) for weights in manifest.weights]
        self.threads = threads
        self._pin = pin
        self._homes: dict[int, tuple[Pool, list[_Run]]] = {}

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The inputs that `run` expects: names, types, shapes."""
        return self._manifest.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """The outputs that `run` returns, in this order."""
        return self._manifest.outputs

    def run(
        self, feeds: "Mapping[str, ArrayLike]", out: "Mapping[str, NDArray[Any]] | None" = None
    ) -> "dict[str, NDArray[Any]]":
        """Run once and return the outputs by name.

        `feeds` maps every input to an array of its type and shape, in any memory layout. Outputs named in
        `out` are written there and returned as the same objects, the others are fresh 64-byte aligned arrays.
        The result does not depend on the number of threads. Raises UsageError for feeds that do not fit.
        """
        out = out or {}
        inputs = gather_inputs(self.inputs, feeds)
        outputs = gather_outputs(self.outputs, out, inputs)
        pool, waiting = self._home()
        run = self._take_run(pool, waiting)
        try:
            run.start(inputs, outputs)
        finally:
            waiting.append(run)
        result = {}
        for spec, array in zip(self.outputs, outputs, strict=True):
            asked = out.get(spec.name)
            if asked is not None and asked is not array:
                np.copyto(asked, array)
            result[spec.name] = array if asked is None else asked
        return result

    def _home(self) -> "tuple[Pool, list[_Run]]":
        """This process's workers and the working memory that waits for a call; both start anew after a fork."""
        number = forks()
        home = self._homes.get(number)
        if home is None:
            home = self._homes.setdefault(number, (pool_of(self.threads, self._pin, self._library), []))
        return home

    def _take_run(self, pool: Pool, waiting: "list[_Run]") -> "_Run":
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
        weakref.finalize(self, pool.give_job, run.job).atexit = False
        return run


class _Run:
    """What one call at a time needs: a job, a pointer table, an arena and the threads' scratch."""

    def __init__(self, manifest: Manifest, library: Library, pool: Pool, weights: "list[NDArray[np.uint8]]") -> None:
        self._library = library
        self.job = pool.take_job(manifest.launches, manifest.width)
        self._words = self.job.view(np.int64)
        self._address = address(self.job)
        stride = -(-manifest.scratch_bytes // ALIGNMENT) * ALIGNMENT
        self._arena = aligned_block(manifest.arena_bytes)
        self._scratch = aligned_block(stride * pool.threads)
        constants = [constant_address(weights, constant) for constant in manifest.constants]
        tensors = len(manifest.inputs) + len(manifest.outputs)
        self._table = np.array([0] * tensors + constants + [address(self._arena)], np.int64)
        self._words[layout.JOB_TABLE // 8] = address(self._table)
        self._words[layout.JOB_SCRATCH // 8] = address(self._scratch)
        self._words[layout.JOB_SCRATCH_STRIDE // 8] = stride

    @property
    def idle(self) -> bool:
        """Whether the last helper has left."""
        return not self._words[layout.JOB_STATE // 8]

    def start(self, inputs: "list[NDArray[Any]]", outputs: "list[NDArray[Any]]") -> None:
        """Run on these arrays; returns when the outputs are complete."""
        for i, array in enumerate((*inputs, *outputs)):
            self._table[i] = address(array)
        self._library.run(self._address)


def _threads(asked: int | None, manifest: Manifest) -> int:
    """The number of threads of a session."""
    usable = len(os.sched_getaffinity(0))
    text = os.environ.get(THREADS_VARIABLE)
    if asked is None and text:
        if not text.isdigit():
            raise UsageError(f"{THREADS_VARIABLE} is {text!r}", hint="Set it to a number of threads.")
        asked = int(text)
    threads = min(manifest.threads or usable, usable) if asked is None else asked
    if threads < 1:
        raise UsageError(f"{threads} threads cannot run anything", hint="Ask for 1 or more.")
    return threads
