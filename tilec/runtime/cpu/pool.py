"""Worker threads, shared by all sessions of a process that ask for the same number of threads.

A pool of N threads is N - 1 workers; the caller of a run is the other one. Workers are parked in native code
(threads.ll) and help whichever run is open; when more callers run than threads were asked for, they step
back and every caller works for itself.
"""

import atexit
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.abi import job_layout
from tilec.runtime.cpu.library import Library
from tilec.runtime.memory import address, aligned_block
from tilec.spec.cpus import usable_cpus

if TYPE_CHECKING:
    from numpy.typing import NDArray

EXIT_SECONDS = 10.0
"""Seconds after which the process ends though a worker, which a busy machine lets wait, has not left compiled code."""


class Pool:
    """`threads - 1` workers and the job blocks that they may look at. Use `pool_of`."""

    def __init__(self, threads: int, pin: bool, library: Library) -> None:
        self.threads = threads
        self._library = library
        self._block = _zeroed(job_layout.POOL_BYTES)
        words = self._block.view(np.int64)
        seconds = _pause_seconds(library)
        words[job_layout.POOL_THREADS // 8] = threads
        words[job_layout.POOL_SPINS // 8] = int(job_layout.IDLE_SPIN / seconds)
        self._wait_spins = int(job_layout.WAIT_SPIN / seconds)
        self._returned: list[tuple[NDArray[np.uint8], Any]] = []
        self._lock = threading.Lock()
        cpus = usable_cpus()
        self._workers = [
            threading.Thread(
                target=self._work,
                args=(worker, cpus[worker % len(cpus)] if pin else None),
                name=f"tilec-{worker}/{threads}",
                daemon=True,
            )
            for worker in range(1, threads)
        ]
        for thread in self._workers:
            thread.start()

    def _work(self, worker: int, cpu: int | None) -> None:
        if cpu is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {cpu})
        self._library.work(address(self._block), worker)

    def take_job(self, launches: int, width: int) -> "NDArray[np.uint8]":
        """A closed job block for runs of `launches` launches that at most `width` threads can share.

        Blocks are reused and never freed: a worker may still look at one when its run is over.
        """
        size = 1 << (job_layout.job_bytes(launches, self.threads) - 1).bit_length()
        block = self._closed_block(size)
        if block is None:
            block = _zeroed(size)
        words = block.view(np.int64)
        words[job_layout.JOB_LAUNCHES // 8] = launches
        words[job_layout.JOB_STRIDE // 8] = job_layout.counter_stride(self.threads)
        words[job_layout.JOB_THREADS // 8] = self.threads
        words[job_layout.JOB_POOL // 8] = address(self._block)
        words[job_layout.JOB_SPINS // 8] = self._wait_spins
        words[job_layout.JOB_WIDTH // 8] = width
        return block

    def _closed_block(self, size: int) -> "NDArray[np.uint8] | None":
        """A returned block of `size` bytes that its last helper has left; what such helpers read goes."""
        with self._lock:
            for place, (block, _) in enumerate(self._returned):
                if not _has_helpers(block):
                    self._returned[place] = (block, None)
            for place, (block, run) in enumerate(self._returned):
                if block.size == size and run is None:
                    del self._returned[place]
                    return block
        return None

    def give_job(self, block: "NDArray[np.uint8]", run: Any) -> None:
        """Take a job block back, and keep the code and memory of its run until a helper that is still leaving has left.
        Finalisers call this, in the middle of anything: it neither waits nor locks."""
        self._returned.append((block, run if _has_helpers(block) else None))

    def stop(self) -> None:
        """End the workers and wait for them."""
        self._library.stop(address(self._block))
        for thread in self._workers:
            thread.join(timeout=EXIT_SECONDS)


_POOLS: dict[tuple[int, bool], Pool] = {}
_POOLS_LOCK = threading.Lock()

FORKS = 0
"""How many forks lie between this process and the one that imported tilec; a pool lives in one of them."""


def pool_of(threads: int, pin: bool, library: Library) -> Pool:
    """The process's pool of that many threads; the first caller's library provides the workers' code."""
    with _POOLS_LOCK:
        pool = _POOLS.get((threads, pin))
        if pool is None:
            pool = _POOLS[threads, pin] = Pool(threads, pin, library)
        return pool


def _has_helpers(block: "NDArray[np.uint8]") -> bool:
    """Whether a run is open or a helper still leaves it."""
    return bool(block.view(np.int64)[job_layout.JOB_STATE // 8])


def _zeroed(size: int) -> "NDArray[np.uint8]":
    block = aligned_block(size)
    block[:] = 0
    return block


def _pause_seconds(library: Library) -> float:
    """Duration of one pause, the shortest of a few measurements."""
    pauses = 2000
    durations = []
    for _ in range(3):
        start = time.perf_counter()
        library.pause(pauses)
        durations.append(time.perf_counter() - start)
    return max(min(durations) / pauses, 1e-9)


def _forget_pools() -> None:
    """In a forked child there are no workers: start afresh."""
    global FORKS, _POOLS_LOCK
    FORKS += 1
    _POOLS_LOCK = threading.Lock()
    _POOLS.clear()


def _stop_pools() -> None:
    for pool in list(_POOLS.values()):
        pool.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)
atexit.register(_stop_pools)
