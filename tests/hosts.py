"""Made-up machines that stand for `host` in tests: the instructions of the real one, everything else as written here.

Tests plan for the same device wherever they run; its times are measured only in tests marked `probes`. The other
machines run through the tests that use `host` by `make test ARGS="--host one-core tests/cli tests/acceptance"`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from tilec.artifact import write_text
from tilec.spec import probe
from tilec.spec.device_text import device_text
from tilec.spec.host import Cache, Host, read_host

TIMINGS: Mapping[str, Any] = {
    "bandwidth": {"dram": [40e9, 52e9], "l3": [140e9, 220e9], "l2": [220e9, 240e9], "l1": [400e9, 520e9]},
    "flops": 260e9,
    "busy": 0.0,
    "spread": 0.0,
}
MEASURED = probe._timings
"""What measures the real machine."""


def usual(machine: Host) -> Host:
    """Two cores with caches of common sizes."""
    caches = (
        Cache(3, 32 << 20, 64, 1, "made up"),
        Cache(2, 1 << 20, 64, 2, "made up"),
        Cache(1, 48 << 10, 64, 2, "made up"),
    )
    return replace(machine, model="a made-up machine", cores=2, caches=caches, memory=16 << 30)


def one_core(machine: Host) -> Host:
    """The usual one with a single core."""
    host = usual(machine)
    return replace(host, cores=1, caches=tuple(replace(cache, instances=1) for cache in host.caches))


def without_avx512(machine: Host) -> Host:
    """The usual one without AVX-512; on a machine that has none, the usual one."""
    host = usual(machine)
    if host.vector_bytes <= 32:
        return host
    features = tuple("-" + f[1:] if f.startswith("+avx512") else f for f in host.features)
    units = tuple(unit for unit in host.units if unit.name == "vpmaddwd")
    source = "AVX-512 is left out"
    return replace(host, features=features, vector_bytes=32, vector_registers=16, vector_source=source, units=units)


def slower(timings: Mapping[str, Any], by: float) -> dict[str, Any]:
    """Timings of a machine that takes `by` times as long."""
    bandwidth = {level: [rate / by for rate in rates] for level, rates in timings["bandwidth"].items()}
    return {**timings, "bandwidth": bandwidth, "flops": timings["flops"] / by}


HOSTS = {
    "usual": (usual, TIMINGS),
    "half-speed": (usual, slower(TIMINGS, 2)),
    "one-core": (one_core, TIMINGS),
    "no-avx512": (without_avx512, TIMINGS),
}
"""Name -> the machine that is made of the real one, its timings."""


def host_text(name: str) -> str:
    """The device file of a made-up machine."""
    made, timings = HOSTS[name]
    host = made(read_host())
    levels = {"dram", *(f"l{cache.level}" for cache in host.caches)}
    bandwidth = {level: rates for level, rates in timings["bandwidth"].items() if level in levels}
    return device_text(host, {**timings, "bandwidth": bandwidth})


def install(name: str, home: Path) -> None:
    """Let a made-up machine be `host` for this process and those it starts; their cache is in `home`."""
    path = home / "tilec" / f"host-{read_host().key}.yaml"
    text = _timeless(host_text(name))
    if not path.exists() or _timeless(path.read_text(encoding="utf-8")) != text:
        write_text(path, host_text(name))
    probe._timings = _refuse


def _timeless(text: str) -> str:
    """A device file without the time of its measurement."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("probe:"))


def _refuse(host: Host) -> NoReturn:
    raise AssertionError("a test measures this machine: plan for a device in a file, or mark the test `probes`")
