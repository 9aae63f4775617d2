"""The processors that this process may use, on systems that tell and on those that do not."""

import os


def usable_cpus() -> list[int]:
    """Numbers of the logical CPUs that this process may run on; all of them where the system keeps no such list."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
