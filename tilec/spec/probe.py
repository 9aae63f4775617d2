"""This machine as a device file: what the system says plus a few seconds of timing, cached per machine.

Figures that were measured beside other work are too low. The file says how much other work there was; such a
measurement does not replace an undisturbed one, and is repeated when the machine is idle.
"""

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

from tilec.artifact import cache_folder, folder_locked, touch, write_text
from tilec.errors import TilecError, UnavailableError
from tilec.spec.cpus import idle_share
from tilec.spec.host import Host, read_host
from tilec.spec.probe_record import ADVICE, probe_record

log = logging.getLogger("tilec")

RETRY = 600
"""Seconds after a disturbed measurement before it is repeated on an idle machine."""

LIMIT = 3600
"""Seconds that a measurement may take: some 10 on an idle machine, but a compiler in the background gets what others
leave of a busy machine."""

IDLE = 0.9
"""Idle share of the cores from which a measurement is repeated."""


def probed_text(*, again: bool = False) -> str:
    """The device file of this machine: from the cache, else measured now and cached.

    A disturbed measurement in the cache is repeated when the machine is idle, with `again` any is. A disturbed
    measurement does not replace an undisturbed one. A cache that cannot be written is told and otherwise ignored.
    Raises UnavailableError when the timing process fails.
    """
    host = read_host()
    path = _kept(host)
    known = known_text()
    if known is not None and not again and not _to_repeat(known, path):
        return known
    # Several processes that measured at once would disturb each other, and plan for different devices.
    with folder_locked(path.parent, lambda: None):
        meanwhile = known_text()
        if meanwhile is not None and meanwhile != known and not again:
            return meanwhile
        return _measured(host, path, known)


def _measured(host: Host, path: Path, known: str | None) -> str:
    """Measure this machine and remember the result, unless it was disturbed and the `known` one was not."""
    from tilec.spec.device_text import device_text

    text = device_text(host, _timings(host))
    try:
        if _disturbed(text):
            if known is not None and not _disturbed(known):
                log.warning("other work slowed this machine: its earlier, undisturbed measurement stays; %s", ADVICE)
                return known
            log.warning("other work slowed this machine while it was measured: %s", ADVICE)
        write_text(path, text)
    except TilecError as error:
        log.warning("the probed device is not cached: %s", error.message)
    return text


def is_newer(text: str, than: str) -> bool:
    """Whether both device files were measured, and the first one later."""
    one, other = probe_record(text), probe_record(than)
    return one is not None and other is not None and one.time > other.time


def _disturbed(text: str) -> bool:
    probe = probe_record(text)
    return probe is not None and probe.disturbed


def _to_repeat(known: str, path: Path) -> bool:
    """Whether a measurement was disturbed, not just now, and would not be so again."""
    if not _disturbed(known) or time.time() - path.stat().st_mtime < RETRY:
        return False
    if idle_share() < IDLE:
        return False
    try:
        touch(path)  # if other work comes in between, the next attempt is later
    except TilecError:
        return False
    log.info("other work slowed this machine when it was measured: measured again")
    return True


def known_text() -> str | None:
    """The device file of this machine if it was measured before, and says how."""
    try:
        text = _kept(read_host()).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return text if probe_record(text) is not None else None


def _kept(host: Host) -> Path:
    return cache_folder() / f"host-{host.key}.yaml"


def _timings(host: Host) -> dict[str, Any]:
    """Run `tilec.spec.measure` in a fresh process whose BLAS uses one thread a call."""
    caches = host.caches
    outermost = max((cache.capacity * cache.instances for cache in caches), default=8 << 20)
    memory = min(max(4 * outermost, 64 << 20), host.memory // 8)
    sizes = {"dram": [memory, memory // host.cores]}
    for cache in caches[:-1]:
        share = cache.capacity * cache.instances // (2 * host.cores)
        sizes[f"l{cache.level}"] = [share, share]
    import subprocess

    request = json.dumps({"sizes": sizes, "cores": host.cores})
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tilec.spec.measure", request],
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=True,
        )
        result: dict[str, Any] = json.loads(done.stdout)
        return result
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        detail = getattr(error, "stderr", None) or str(error)
        raise UnavailableError(
            f"this machine cannot be measured: {detail.strip().splitlines()[-1]}",
            hint="Describe it in a device file and name that with --device; start from devices/avx2.yaml.",
        ) from error


def _environment() -> dict[str, str]:
    """One BLAS thread a call, none of the caller's settings that hold NumPy back, the same import path."""
    limits = ("OPENBLAS_", "OMP_", "MKL_", "NPY_", "VECLIB_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(limits)}
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
    path = os.pathsep.join(folder for folder in sys.path if folder)
    return {**kept, **dict.fromkeys(threads, "1"), "PYTHONPATH": path}
