"""What a launch in a graph costs: by blocks and arguments, after one that it reads, and with programmatic edges."""

from __future__ import annotations

import ctypes
from typing import Any

from tests.on_gpu.clock import figures
from tests.on_gpu.probes.probe import SMS, Probe

MANY = 100

GRIDS = (1, SMS, 4 * SMS, 32 * SMS)

POINTERS = (1, 8, 32)


def text() -> str:
    """The kernels."""
    kernels = [_empty(count) for count in POINTERS]
    return "\n".join([*kernels, _CHAIN])


def symbols() -> list[str]:
    """Their names."""
    return [*(f"empty_{count}" for count in POINTERS), "store", "chain", "chain_early"]


def _empty(count: int) -> str:
    pointers = ", ".join(f"int* p{i}" for i in range(count))
    return f"T_KERNEL void empty_{count}({pointers}) {{ if (bid_ < 0) *p{count - 1} = 1; }}"


_CHAIN = """T_KERNEL void store(int* p) { if (tid_ == 0) p[bid_] = 1; }
T_KERNEL void chain(int* p) { if (tid_ == 0) p[bid_] += 1; }
T_KERNEL void chain_early(int* p) {
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (tid_ == 0) p[bid_] += 1;
}"""


def measure(probe: Probe) -> dict[str, Any]:
    """Microseconds of one launch among 100 of a graph."""
    place = probe.driver.allocate(GRIDS[-1] * 4)
    probe.driver.fill(place, 0, GRIDS[-1] * 4)
    result: dict[str, Any] = {}
    for grid in GRIDS:
        for count in POINTERS:
            result[f"empty, {grid} blocks, {count} pointers"] = _replayed(
                probe, f"empty_{count}", grid, [place] * count
            )
        for symbol in ("store", "chain"):
            result[f"{symbol}, {grid} blocks"] = _replayed(probe, symbol, grid, [place])
        try:
            result[f"chain, programmatic edges, {grid} blocks"] = _programmatic(probe, grid, place)
        except Exception as wrong:
            result[f"chain, programmatic edges, {grid} blocks"] = str(wrong)[:200]
    probe.driver.free(place)
    return result


def _replayed(probe: Probe, symbol: str, grid: int, pointers: list[int]) -> float:
    driver = probe.driver
    driver.begin_graph()
    for _ in range(MANY):
        probe.launch(symbol, grid, 128, pointers)
    return _timed(probe, driver.end_graph())


def _timed(probe: Probe, graph: Any) -> float:
    driver, samples = probe.driver, []
    for _ in range(7):
        driver.launch_graph(graph)
        first = driver.event()
        driver.launch_graph(graph)
        last = driver.event()
        driver.synchronize()
        samples.append(driver.elapsed(first, last) * 1e6 / MANY)
    return figures(samples)["us"]


class _Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int * 16))


class _Config(ctypes.Structure):
    _fields_ = (
        ("sizes", ctypes.c_uint * 7),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


_PROGRAMMATIC = 6
"""CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION."""


def _programmatic(probe: Probe, grid: int, place: int) -> float:
    """The same where a kernel begins before the one in front of it has ended."""
    driver: Any = probe.driver
    library = ctypes.CDLL("libcuda.so.1")
    attribute = _Attribute(_PROGRAMMATIC, 0, (ctypes.c_int * 16)(1))
    sizes = (ctypes.c_uint * 7)(grid, 1, 1, 128, 1, 1, 0)
    config = _Config(sizes, driver._stream, ctypes.pointer(attribute), 1)
    pointer = ctypes.c_uint64(place)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
    driver.begin_graph()
    for _ in range(MANY):
        status = library.cuLaunchKernelEx(ctypes.byref(config), probe.module["chain_early"], arguments, None)
        if status:
            driver.end_graph()
            raise RuntimeError(f"cuLaunchKernelEx: {status}")
    return _timed(probe, driver.end_graph())
