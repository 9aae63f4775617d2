"""Timings of this machine with NumPy, in a process of its own: `python -m tilec.spec.measure '{"sizes": ...}'`.

Bandwidth of a level is the best of reading a matrix that fits there (BLAS gemv) and copying an array; the
compute rate is the best single-precision GEMM. All are lower bounds of what the machine can do: a kernel that
is faster proves the number too low. A repetition in which other work took the cores away counts only if no better
one is to be had. The share of time that other work took, and the spread of repetitions, are part of the answer.
"""

import json
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

Work = Callable[[], None]

GEMM_SIZE = 768
SECONDS = 0.12
"""Seconds that one figure is measured for; the best repetition counts, so that noise only costs time."""
PATIENCE = 5
"""Times as long is waited for a repetition without other work beside it."""
BUSY = 0.1
"""Share of its threads' time that other work takes at most in a repetition that counts as undisturbed."""


@dataclass(frozen=True, order=True)
class Rate:
    """A repetition: whether it was undisturbed, amount per second, and the share of time that other work took. The
    greatest is the best."""

    quiet: bool
    amount: float
    busy: float = 0.0


def rate(make: Callable[[], tuple[Work, float]], threads: int) -> tuple[Rate, float]:
    """Best repetition of `threads` threads, each with its own work, and the spread: how far the median repetition lies
    below the best, as a share of the best.

    `make` returns a function and the amount (bytes or operations) that one call of it handles.
    """
    works = [make() for _ in range(threads)]
    rounds: list[Rate] = []
    best = Rate(False, 0.0, 1.0)
    seconds = SECONDS * (1 if threads == 1 else 3)
    start = time.perf_counter()
    while (spent := time.perf_counter() - start) < seconds or (not best.quiet and spent < PATIENCE * seconds):
        rounds.append(_round(works))
        best = max(best, rounds[-1])
    fastest = max((each.amount for each in rounds), default=0.0)
    return best, 1 - median(each.amount for each in rounds) / fastest if fastest else 0.0


def _round(works: list[tuple[Work, float]]) -> Rate:
    """One repetition: all threads start together, the slowest ends it."""
    barrier = threading.Barrier(len(works))
    spans: list[tuple[float, float, float]] = []

    def run(work: Work) -> None:
        barrier.wait()
        start, ran = time.perf_counter(), time.thread_time()
        work()
        work()
        spans.append((start, time.perf_counter(), time.thread_time() - ran))

    threads = [threading.Thread(target=run, args=(work,)) for work, _ in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = max(end for _, end, _ in spans) - min(start for start, _, _ in spans)
    busy = max(0.0, 1 - sum(ran for _, _, ran in spans) / (len(works) * seconds))
    return Rate(busy <= BUSY, 2 * sum(amount for _, amount in works) / seconds, busy)


def reading(size: int) -> tuple[Work, float]:
    """Read a matrix of `size` bytes again and again: gemv, each element used once."""
    rows, columns = max(8, size // 1024), 256
    repeats = max(1, 2**25 // size)
    matrix = np.broadcast_to(np.ones((rows, columns), np.float32), (repeats, rows, columns))
    vector = np.ones((columns, 1), np.float32)
    out = np.empty((repeats, rows, 1), np.float32)
    return lambda: _ignore(np.matmul(matrix, vector, out=out)), 4.0 * rows * columns * repeats


def copying(size: int) -> tuple[Work, float]:
    """Copy half of `size` bytes into the other half; bytes read and bytes written both count."""
    source = np.ones(max(1, size // 8), np.float32)
    target = np.empty_like(source)
    repeats = max(1, 2**25 // size)

    def work() -> None:
        for _ in range(repeats):
            np.copyto(target, source)

    return work, 2.0 * source.nbytes * repeats


def multiplying() -> tuple[Work, float]:
    """A square GEMM in single precision; a multiply-add is two operations."""
    left = np.ones((GEMM_SIZE, GEMM_SIZE), np.float32)
    out = np.empty_like(left)
    return lambda: _ignore(np.matmul(left, left, out=out)), 2.0 * GEMM_SIZE**3


def _ignore(result: Any) -> None:
    """Drop the result of a call that is made for its time."""


def measure(sizes: dict[str, list[int]], cores: int) -> dict[str, Any]:
    """Bytes per second of one core and of all, for each level; operations per second of all cores.

    `sizes` gives for each level the bytes that one core and that each of all cores works on. `busy` is the share of
    time that other work took from the most disturbed figure, `spread` that of the operations per second.
    """
    rates = {
        level: [
            max(rate(lambda kind=kind, size=size: kind(size), threads)[0] for kind in (reading, copying))  # type: ignore[misc]
            for size, threads in zip(pair, (1, cores), strict=True)
        ]
        for level, pair in sizes.items()
    }
    flops, spread = rate(multiplying, cores)
    return {
        "bandwidth": {level: [each.amount for each in pair] for level, pair in rates.items()},
        "flops": flops.amount,
        "busy": max(each.busy for each in (flops, *(each for pair in rates.values() for each in pair))),
        "spread": spread,
    }


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    json.dump(measure(request["sizes"], request["cores"]), sys.stdout)
