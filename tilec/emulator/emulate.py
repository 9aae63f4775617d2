"""A built kernel that runs blocks on memory of this process."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tilec.abi.gpu_code import GpuCode
from tilec.emulator.build import build_kernels, kernel_text
from tilec.emulator.findings import Emulation, read_results
from tilec.emulator.orders import ORDERS, Order
from tilec.errors import ArtifactError


@dataclass(frozen=True, slots=True)
class Region:
    """Memory behind an argument: address and bytes; elements of `granule` bytes; whether the kernel may write there."""

    address: int
    bytes: int
    granule: int = 1
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """How a kernel is launched: blocks, threads of a block, bytes of shared memory of a block."""

    grid: int
    block: int
    shared_bytes: int = 0

    def __post_init__(self) -> None:
        if self.block < 1 or self.block > 1024:
            raise ValueError(f"a block has 1 to 1024 threads, not {self.block}")


class _Region(ctypes.Structure):
    _fields_ = (
        ("base", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("granule", ctypes.c_size_t),
        ("writable", ctypes.c_int),
    )


class _Launch(ctypes.Structure):
    _fields_ = (
        ("arguments", ctypes.POINTER(ctypes.c_void_p)),
        ("regions", ctypes.POINTER(_Region)),
        ("region_count", ctypes.c_int),
        ("grid", ctypes.c_uint),
        ("threads", ctypes.c_uint),
        ("shared_bytes", ctypes.c_size_t),
        ("blocks", ctypes.POINTER(ctypes.c_uint)),
        ("block_count", ctypes.c_int),
        ("order", ctypes.c_int),
        ("seed", ctypes.c_uint),
        ("counting", ctypes.c_int),
    )


class EmulatedKernel:
    """Kernel `name` of a library that `build_kernels` made from `text`. One launch at a time runs in a library."""

    def __init__(self, library: Path, name: str, text: str) -> None:
        loaded = ctypes.CDLL(str(library))
        self._run = loaded[f"emu_run_{name}"]
        self._run.argtypes = (ctypes.POINTER(_Launch),)
        self._run.restype = ctypes.c_char_p
        self._source = text.splitlines()
        self.name = name

    def launch(
        self,
        shape: Shape,
        arguments: Sequence[int | Region],
        order: Order = ORDERS[0],
        blocks: Sequence[int] | None = None,
        *,
        reachable: Sequence[Region] = (),
        counting: bool = True,
    ) -> Emulation:
        """Run a launch, or some `blocks` of it, and tell what was found.

        Arguments are the memory behind pointers, or integers of 8 bytes. The kernel may also touch what is `reachable`.
        """
        chosen = list(range(shape.grid)) if blocks is None else list(blocks)
        values = [ctypes.c_int64(each.address if isinstance(each, Region) else each) for each in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        memory = [each for each in arguments if isinstance(each, Region)] + list(reachable)
        regions = (_Region * len(memory))(*(_Region(m.address, m.bytes, m.granule, m.writable) for m in memory))
        numbers = (ctypes.c_uint * len(chosen))(*chosen)
        launch = _Launch(
            pointers, regions, len(memory), shape.grid, shape.block, shape.shared_bytes,
            numbers, len(chosen), order.number, order.seed, counting,
        )  # fmt: skip
        with _LOCK:
            told = self._run(ctypes.byref(launch))
        return read_results(told.decode(), self._source, len(chosen), shape.grid)


def emulated(code: GpuCode, folder: Path, symbol: str, cache: Path) -> EmulatedKernel:
    """A kernel of a model in `folder`, built into `cache`. Raises UnavailableError without a compiler, ArtifactError
    when a file is missing."""
    try:
        text = kernel_text((folder / code.text.file).read_text(encoding="utf-8"), symbol)
        headers = {Path(each.file).name: (folder / each.file).read_text(encoding="utf-8") for each in code.headers}
    except OSError as error:
        hint = "Run `tilec codegen` again."
        raise ArtifactError(f"cannot read the kernels: {error.strerror}", str(folder), hint) from error
    return EmulatedKernel(build_kernels(text, [symbol], headers, cache, code.lanes), symbol, text)


_LOCK = threading.Lock()


def sample(grid: int, most: int) -> list[int]:
    """At most `most` blocks of a grid, the first and the last among them, evenly spread."""
    if grid <= most:
        return list(range(grid))
    return sorted({round(i * (grid - 1) / max(1, most - 1)) for i in range(most)})
