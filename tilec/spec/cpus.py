"""The processors that this process may use, on systems that tell and on those that do not."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_ALONE: ContextVar[bool] = ContextVar("alone", default=False)


def usable_cpus() -> list[int]:
    """Numbers of the logical CPUs that this process may run on; all of them where the system keeps no such list."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def process_count() -> int:
    """Number of processes among which work may be divided."""
    forks = sys.platform == "linux" and hasattr(os, "fork")
    return len(usable_cpus()) if forks and not _ALONE.get() else 1


@contextmanager
def without_children() -> Iterator[None]:
    """Inside, work is divided among no processes: others have the rest of the machine."""
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


def idle_share(seconds: float = 0.1, stat: Path = Path("/proc/stat")) -> float:
    """Share of the usable CPUs' time that no process takes, watched for some seconds; where the system does not tell,
    from the load of the last minute."""
    try:
        before = _times(stat)
        time.sleep(seconds)
        after = _times(stat)
    except (OSError, ValueError):
        if not hasattr(os, "getloadavg"):
            return 1.0
        return max(0.0, 1 - os.getloadavg()[0] / len(usable_cpus()))
    idle, total = (late - early for late, early in zip(after, before, strict=True))
    return idle / total if total > 0 else 1.0


def _times(stat: Path) -> tuple[int, int]:
    """Ticks of the usable CPUs since the system started: idle ones, and all."""
    usable = {f"cpu{number}" for number in usable_cpus()}
    lines = [line.split() for line in stat.read_text(encoding="ascii").splitlines()]
    counts = [[int(each) for each in line[1:9]] for line in lines if line and line[0] in usable]
    if not counts:
        raise ValueError("no processor is listed")
    return sum(count[3] + count[4] for count in counts), sum(map(sum, counts))
