"""Timings of this machine with NumPy, in a process of its own: `python -m tilec.spec.measure '{"sizes": ...}'`.

Bandwidth of a level is the best of reading a matrix that fits there (BLAS gemv) and copying an array; the
compute rate is the best single-precision GEMM. All are lower bounds of what the machine can do: a kernel that
is faster proves the number too low.
"""

import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Work = Callable[[], None]

GEMM_SIZE = 768
SECONDS = 0.12
"""Seconds that one figure is measured for; the best repetition counts, so that noise only costs time."""


def rate(make: Callable[[], tuple[Work, float]], threads: int) -> float:
    """Best amount per second of `threads` threads, each with its own work.

    `make` returns a function and the amount (bytes or operations) that one call of it handles.
    """
    works = [make() for _ in range(threads)]
    best = 0.0
    deadline = time.perf_counter() + SECONDS * (1 if threads == 1 else 3)
    while time.perf_counter() < deadline:
        best = max(best, _round(works))
    return best


def _round(works: list[tuple[Work, float]]) -> float:
    """One repetition: all threads start together, the slowest ends it."""
    if len(works) == 1:
        start = time.perf_counter()
        works[0][0]()
        return works[0][1] / (time.perf_counter() - start)
    barrier = threading.Barrier(len(works))
    spans: list[tuple[float, float]] = []

    def run(work: Work) -> None:
        barrier.wait()
        start = time.perf_counter()
        work()
        work()
        spans.append((start, time.perf_counter()))

    threads = [threading.Thread(target=run, args=(work,)) for work, _ in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 2 * sum(amount for _, amount in works) / (max(e for _, e in spans) - min(s for s, _ in spans))


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

    `sizes` gives for each level the bytes that one core and that each of all cores works on.
    """
    bandwidths = {
        level: [
            max(rate(lambda kind=kind, size=size: kind(size), threads) for kind in (reading, copying))  # type: ignore[misc]
            for size, threads in zip(pair, (1, cores), strict=True)
        ]
        for level, pair in sizes.items()
    }
    return {"bandwidth": bandwidths, "flops": rate(multiplying, cores)}


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    json.dump(measure(request["sizes"], request["cores"]), sys.stdout)
