"""The text of the device file of a machine that was measured."""

import json
import time
from collections.abc import Mapping
from typing import Any

from tilec.spec.host import Cache, DotUnit, Host
from tilec.spec.probe_record import ADVICE
from tilec.spec.units import BANDWIDTH, BYTES, RATE


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
