"""The executor of the CPU back end: jobs on a pool of threads."""

import time
import weakref
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.abi import job_layout
from tilec.abi.alignment import ALIGNMENT
from tilec.abi.manifest import CallInput, Manifest
from tilec.runtime.cpu import pool as pools
from tilec.runtime.cpu.library import Library, load_library
from tilec.runtime.cpu.pool import Pool, pool_of
from tilec.runtime.host_memory import HostMemory
from tilec.runtime.memory import address, aligned_block, map_weights
from tilec.runtime.sizes import largest_arenas
from tilec.runtime.times import Times

if TYPE_CHECKING:
    from numpy.typing import NDArray

PATIENCE = 100
"""Turns that a caller lets threads have that are still leaving the runs that wait: less than a run needs to get its
memory."""

_STATE, _TIMES = job_layout.JOB_STATE // 8, job_layout.JOB_TIMES // 8


def load(folder: Path, manifest: Manifest, threads: int, pin: bool, check: bool) -> "CpuExecutor":
    """Open the library and map the weights of a model; a `tilec.runtime.executor.Loader`."""
    sized = manifest.sizes is not None
    library = load_library(folder, manifest.library, manifest.interface, sized) if manifest.library else None
    weights = [map_weights(folder, file, check) for file in manifest.weights]
    return CpuExecutor(manifest, library, weights, threads, pin)


class CpuExecutor:
    """A library, the weights that it reads, and runs that wait for a caller; `library` is None without launches."""

    def __init__(
        self,
        manifest: Manifest,
        library: Library | None,
        weights: "list[NDArray[np.uint8]]",
        threads: int,
        pin: bool,
    ) -> None:
        self._manifest = manifest
        self._library = library
        self._weights = weights
        self._threads = threads
        self._pin = pin
        self._processes: dict[int, tuple[Pool | None, list[CpuRun]]] = {}
        sizes = manifest.sizes
        self._largest = None if sizes is None or library is None else largest_arenas(sizes, self.evaluate)

    def take_run(self) -> "CpuRun":
        """Working memory that no other run uses, nor any thread that is still leaving one."""
        pool, waiting = self._process()
        for _ in range(PATIENCE):
            for _ in range(len(waiting)):
                try:
                    run = waiting.pop()
                except IndexError:
                    break
                if run.idle:
                    return run
                waiting.insert(0, run)
            if not waiting:
                break
            time.sleep(0)
        run = CpuRun(self._manifest, self._library, pool, self._weights, self._largest)
        if pool is not None:
            for job in run.jobs:
                weakref.finalize(self, pool.give_job, job, run).atexit = False
        return run

    def give_run(self, run: "CpuRun") -> None:
        """Let the next caller have it."""
        self._process()[1].append(run)

    def evaluate(self, numbers: "NDArray[np.int64]", part: int) -> None:
        """Compute the numbers of a part."""
        assert self._library is not None
        assert self._library.numbers is not None
        self._library.numbers(address(numbers), part)

    def addressed(self, numbers: "NDArray[np.int64] | None") -> "Callable[[Sequence[int]], None] | None":
        """Runs of a model without calls on tensors at given addresses, inputs before outputs, at the sizes that the
        numbers say; None where nothing is launched. A call of a function takes as long as a small model: there are
        none but for working memory that is not there yet."""
        if self._library is None or not self._manifest.segments[0].launches:
            return None
        run_job, processes = self._library.run, self._processes

        def call(addresses: Sequence[int]) -> None:
            try:
                waiting = processes[pools.FORKS][1]
                run = waiting.pop()
            except (KeyError, IndexError):
                run, waiting = self.take_run(), self._process()[1]
            words, table, place = run.first
            if words[_STATE]:
                waiting.insert(0, run)
                run = self.take_run()
                words, table, place = run.first
            for number, tensor in enumerate(addresses):
                table[number] = tensor
            if numbers is not None:
                run.numbers[:] = numbers
                run.resize(0)
            words[_TIMES] = 0
            try:
                run_job(place)
            finally:
                waiting.append(run)

        return call

    def _process(self) -> "tuple[Pool | None, list[CpuRun]]":
        """This process's workers and the runs that wait for a caller; both start anew after a fork."""
        number = pools.FORKS
        process = self._processes.get(number)
        if process is None:
            pool = pool_of(self._threads, self._pin, self._library) if self._library else None
            process = self._processes.setdefault(number, (pool, []))
        return process


def _words_of(block: Any) -> memoryview:
    """A block as words that are read and written one at a time, faster than an array's."""
    return memoryview(block).cast("B").cast("q")


class CpuRun:
    """Host memory, and for each segment with launches a job of the pool with its threads' scratch."""

    def __init__(
        self,
        manifest: Manifest,
        library: Library | None,
        pool: Pool | None,
        weights: "list[NDArray[np.uint8]]",
        largest: Sequence[int] | None,
    ) -> None:
        self._library = library
        self._sizes = manifest.sizes
        self._memory = HostMemory(manifest, weights, largest)
        self._threads = pool.threads if pool else 0
        self._jobs: list[NDArray[np.uint8] | None] = []
        for number, segment in enumerate(manifest.segments):
            if segment.launches == 0 or pool is None:
                self._jobs.append(None)
                continue
            job = pool.take_job(segment.launches, segment.width)
            words = job.view(np.int64)
            words[job_layout.JOB_TABLE // 8] = address(self._memory.table)
            words[job_layout.JOB_SEGMENT // 8] = number
            self._jobs.append(job)
        self._addresses = [None if job is None else address(job) for job in self._jobs]
        self._words = [None if job is None else _words_of(job) for job in self._jobs]
        self._give_scratch(manifest.scratch_bytes)
        self._table = _words_of(self._memory.table)

    @cached_property
    def first(self) -> tuple[memoryview, memoryview, int]:
        """The job of the first segment, which has launches, and the table of addresses, as words; where the job is."""
        words, place = self._words[0], self._addresses[0]
        assert words is not None
        assert place is not None
        return words, self._table, place

    @property
    def jobs(self) -> "list[NDArray[np.uint8]]":
        """The job blocks."""
        return [job for job in self._jobs if job is not None]

    @property
    def idle(self) -> bool:
        """Whether the last helper has left."""
        for words in self._words:  # noqa: SIM110  # a generator would take as long as all else here
            if words is not None and words[_STATE]:
                return False
        return True

    @property
    def numbers(self) -> "NDArray[np.int64]":
        """The numbers of a model with symbols."""
        return self._memory.numbers

    def resize(self, part: int) -> None:
        """Make room for the tensors and the working memory of a part, and let as many threads as its segment can use
        take part in it. Working memory only grows, by half of what it was at least."""
        assert self._sizes is not None
        self._memory.resize(part)
        job = self._jobs[part]
        if job is not None:
            job.view(np.int64)[job_layout.JOB_WIDTH // 8] = self.numbers[self._sizes.widths[part]]
            need = int(self.numbers[self._sizes.scratch[part]])
            if need > self._stride:
                self._give_scratch(max(need, self._stride * 3 // 2))

    def _give_scratch(self, size: int) -> None:
        """Let every thread of every job have a block of `size` bytes."""
        self._stride = -(-size // ALIGNMENT) * ALIGNMENT
        self._scratch = aligned_block(self._stride * self._threads)
        for job in self.jobs:
            words = job.view(np.int64)
            words[job_layout.JOB_SCRATCH // 8] = address(self._scratch)
            words[job_layout.JOB_SCRATCH_STRIDE // 8] = self._stride

    def bind(self, first: int, arrays: Sequence[Any]) -> None:
        """Enter the addresses of arrays from tensor number `first` on."""
        self._memory.bind(first, arrays)

    def operand(self, spec: CallInput) -> Any:
        """The array of the arena or of the constants that a call reads."""
        return self._memory.operand(spec)

    def launch(self, segment: int, times: Times | None) -> None:
        """Run the job of a segment, if it has one, on the calling thread and on workers that join it."""
        words, place = self._words[segment], self._addresses[segment]
        if words is None or place is None or self._library is None:
            return
        while words[_STATE]:  # the body of a loop: a helper still inside the last step would misread new counters
            time.sleep(0)
        words[_TIMES] = 0 if times is None else address(times.of(segment))
        self._library.run(place)

    def poison(self) -> None:
        """Fill the arena with NaN."""
        self._memory.poison()

    def step(self, segment: int, launch: int) -> None:
        """Run one launch of a segment: the counters that the whole run left say that all other launches are done.

        A job of no launches keeps its counters when it starts.
        """
        job, place = self._jobs[segment], self._addresses[segment]
        if job is None or place is None or self._library is None:
            return
        words = job.view(np.int64)
        self._await_helpers()  # one that is still leaving the run before would take the tasks of this launch again
        count, stride = int(words[job_layout.JOB_LAUNCHES // 8]), int(words[job_layout.JOB_STRIDE // 8])
        counters = job[job_layout.JOB_COUNTERS : job_layout.JOB_COUNTERS + count * stride]
        complete = counters.copy()
        counters[launch * stride : (launch + 1) * stride] = 0
        words[job_layout.JOB_TIMES // 8] = 0
        words[job_layout.JOB_LAUNCHES // 8] = 0
        try:
            self._library.run(place)
        finally:
            words[job_layout.JOB_LAUNCHES // 8] = count
        self._await_helpers()  # one that is still leaving reads the counters
        counters[:] = complete

    def _await_helpers(self) -> None:
        while not self.idle:
            time.sleep(0)
