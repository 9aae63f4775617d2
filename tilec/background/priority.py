"""What the compiler in the background takes of the machine: the time that nobody else wants, and part of the memory."""

from __future__ import annotations

import ctypes
import os
import platform
from contextlib import suppress
from pathlib import Path

NICE = 10

LEAST = 2 << 30
"""Bytes of data that a command may have, however small the machine is."""

_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
"""Numbers of a system call that the C library has no function for."""

_IDLE_DISK = 3 << 13

AUTOGROUP = Path("/proc/self/autogroup")
MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")


def give_way() -> None:
    """Let this process, and those that it starts, give way to all others as far as the system has means for it."""
    with suppress(OSError, AttributeError):
        os.nice(NICE)
    with suppress(OSError):
        AUTOGROUP.write_text(str(NICE))  # among sessions nothing else counts
    idle(0)
    number = _IOPRIO_SET.get(platform.machine())
    if number is not None and hasattr(os, "sched_setscheduler"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).syscall(number, 1, 0, _IDLE_DISK)


def idle(process: int) -> None:
    """Let a process run only where nothing else wants to."""
    with suppress(OSError, AttributeError):
        os.sched_setscheduler(process, os.SCHED_IDLE, os.sched_param(0))


def ordinary(process: int) -> None:
    """Let a process have the share that its niceness gives it: where others never rest, an idle one never ends."""
    for each in _threads(process):
        with suppress(OSError, AttributeError):
            os.sched_setscheduler(each, os.SCHED_OTHER, os.sched_param(0))


def cpu_seconds(process: int) -> float | None:
    """CPU seconds that a process has had; None where the system does not tell."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def bound_memory() -> int | None:
    """Let this process, and each that it starts, have data of half of the memory at most; returns the limit in bytes,
    None where the system has none."""
    try:
        import resource

        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        with suppress(OSError, ValueError):
            memory = min(memory, int(MEMORY_LIMIT.read_text(encoding="ascii")))
        limit = max(LEAST, memory // 2)
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if hard != resource.RLIM_INFINITY:
            limit = min(limit, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    except (ImportError, OSError, ValueError):
        return None
    return limit


def _threads(process: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{process}/task")]
    except OSError:
        return [process]
