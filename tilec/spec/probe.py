"""This machine as a device file: what the system says plus a few seconds of timing, cached per machine.

Figures that were measured beside other work are too low. The file says how much other work there was; such a
measurement does not replace an undisturbed one, and is repeated when the machine is idle.
"""

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilec.artifact import cache_folder, folder_locked, touch, write_text
from tilec.errors import TilecError, UnavailableError
from tilec.spec.cpus import idle_share
from tilec.spec.host import Cache, DotUnit, Host, read_host
from tilec.spec.probe_record import probe_record
from tilec.spec.units import BANDWIDTH, BYTES, RATE

log = logging.getLogger("tilec")

ADVICE = "run `tilec device probe` when it is idle"

RETRY = 600
"""Seconds after a disturbed measurement before it is repeated on an idle machine."""

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


def device_text(host: Host, timings: Mapping[str, Any]) -> str:
    """The device file of a machine from its facts and `tilec.spec.measure`'s figures."""
    cores = f"{host.cores} cores" if host.cores > 1 else "1 core"
    timings = {**timings, "bandwidth": _passed_through(timings["bandwidth"])}
    rate = two_digits(timings["flops"])
    blocks = [
        "# yaml-language-server: $schema=device.schema.json\n"
        "# Written by `tilec device probe`. Measured numbers are rounded to two digits and are lower bounds: the best\n"
        "# that NumPy reached. A kernel that is faster proves them too low; raise them here.\n"
        f"name: host\nkind: cpu\ndescription: {json.dumps(f'{host.model}, {cores}')}\nlevels:\n"
        "  - name: dram\n"
        f"    capacity: {BYTES.format(two_digits(host.memory))} # memory that this process may use\n"
        f"{_implicit(64, timings['bandwidth']['dram'], 'measured: gemv and copies far larger than the caches')}"
    ]
    below = 1
    for position, cache in enumerate(host.caches):
        units = max(1, cache.instances // below)
        per_core = cache.instances == host.cores and below != host.cores
        scope = "core" if per_core else f"l{cache.level}" if units > 1 else ""
        blocks.append(_cache_block(cache, units, scope, timings, rate, innermost=position == len(host.caches) - 1))
        below = max(below, cache.instances)
    registers = host.vector_bytes * host.vector_registers
    blocks.append(
        "  - name: reg\n"
        f"    capacity: {BYTES.format(registers)} # {host.vector_registers} registers of {host.vector_bytes} bytes\n"
        "    managed: explicit\n"
        f"    transaction: {{element: 4B, shape: [{host.vector_bytes // 4}]}} # one register of f32\n"
        f"    alignment: {host.vector_bytes}B # one register\n"
        f"launch_level: dram\ncore_level: {_core_level(host)}\n"
        "launch_overhead: 1us # assumed: a call from the host function, threads already awake\n"
        "compute:\n  - name: fma\n    inputs: [f32, f32]\n    accumulator: f32\n"
        f"    tile: {{n: {host.vector_bytes // 4}}} # one register of f32\n"
        f"    rate: {RATE.format(rate)} # measured: single-precision GEMM of NumPy's BLAS on {cores}\n"
        "    scope: core\n"
        f"{''.join(_unit_block(unit, host.vector_bytes, rate) for unit in host.units)}"
        f"vector: {{bytes: {host.vector_bytes}B, registers: {host.vector_registers}}} # {host.vector_source}\n"
        "target:\n  backend: cpu\n"
        f"  triple: {host.triple}\n  processor: {host.processor} # family and model in /proc/cpuinfo\n"
        f"  features: [{', '.join(json.dumps(feature) for feature in host.features)}] # flags in /proc/cpuinfo\n"
        f'probe: {{time: "{time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}", '
        f"busy: {timings['busy']:.2f}, spread: {timings['spread']:.2f}}} # other work; {ADVICE}\n"
    )
    return "".join(blocks)


def _passed_through(bandwidth: Mapping[str, list[float]]) -> dict[str, list[float]]:
    """Bandwidths of levels, lowest first, where a cache delivers at least what comes through it from the level below:
    one whose share is not this machine's alone is measured slower than memory."""
    least, found = [0.0, 0.0], dict[str, list[float]]()
    for level, measured in bandwidth.items():
        found[level] = least = [max(pair) for pair in zip(least, measured, strict=True)]
    return found


def _unit_block(unit: DotUnit, vector_bytes: int, rate: int) -> str:
    """A unit for words: an instruction for each multiply-add of f32."""
    rated = RATE.format(unit.elements * rate)
    return (
        f"  - name: {unit.name}\n    inputs: [{unit.inputs}]\n    accumulator: {unit.accumulator}\n"
        f"    tile: {{n: {vector_bytes // 4}, k: {unit.elements}}} # one register of words\n"
        f"    rate: {rated if unit.accumulator == 'f32' else rated.replace('FLOP', 'OP')} "
        f"# derived: {unit.elements} products for each of fma\n    scope: core\n"
    )


def two_digits(value: float) -> int:
    """`value` rounded to two significant digits, so that two probes of one machine mostly agree."""
    return int(float(f"{value:.1e}"))


def _core_level(host: Host) -> str:
    """The lowest level of which every core has an instance."""
    return next((f"l{cache.level}" for cache in host.caches if cache.instances == host.cores), "reg")


def _cache_block(
    cache: Cache, units: int, scope: str, timings: Mapping[str, Any], rate: int, *, innermost: bool
) -> str:
    name = f"l{cache.level}"
    if innermost:
        # Too small for NumPy's call overhead. Two vector loads a cycle stand beside two vector multiply-adds.
        bandwidth = (
            f"    bandwidth: {{total: {BANDWIDTH.format(2 * rate)}}} # derived: two bytes per operation of fma\n"
        )
        body = _implicit(cache.line, None, "") + bandwidth
    else:
        body = _implicit(cache.line, timings["bandwidth"][name], "measured: gemv and copies that fit")
    head = f"  - name: {name}\n    capacity: {BYTES.format(cache.capacity)} # {cache.source}\n"
    if units > 1 or scope:
        head += f"    units: {units} # {cache.source}\n"
    if scope:
        head += f"    scope: {scope}\n"
    return head + body


def _implicit(line: int, bandwidth: list[float] | None, how: str) -> str:
    """The keys that memory and every cache have; `bandwidth` of one core and of all cores."""
    text = (
        "    managed: implicit\n    write_allocate: true\n"
        f"    transaction: {{element: 1B, shape: [{line}]}} # one line\n    alignment: {line}B # one line\n"
    )
    if bandwidth is not None:
        one, total = (BANDWIDTH.format(two_digits(each)) for each in (bandwidth[0], max(bandwidth)))
        text += f"    bandwidth: {{total: {total}, reader: {one}}} # {how}\n"
    return text


def _timings(host: Host) -> dict[str, Any]:
    """Run `tilec.spec.measure` in a fresh process whose BLAS uses one thread a call."""
    caches = host.caches
    outermost = max((cache.capacity * cache.instances for cache in caches), default=8 << 20)
    memory = min(max(4 * outermost, 64 << 20), host.memory // 8)
    sizes = {"dram": [memory, memory // host.cores]}
    for cache in caches[:-1]:
        share = cache.capacity * cache.instances // (2 * host.cores)
        sizes[f"l{cache.level}"] = [share, share]
    request = json.dumps({"sizes": sizes, "cores": host.cores})
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tilec.spec.measure", request],
            env=_environment(),
            capture_output=True,
            text=True,
            timeout=120,
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
