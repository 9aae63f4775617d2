"""The GPUs of this machine: those that NVIDIA's driver tells of, and those of AMD that Linux lists."""

import ctypes
import re
from collections.abc import Sequence
from ctypes import byref, c_int, c_size_t
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
"""Names of NVIDIA's driver."""

_MAJOR, _MINOR, _MULTIPROCESSORS = 75, 76, 16
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT."""

_NVIDIA = re.compile(r"sm_(\d+)(\d)(a?)")
"""Generation and revision of a processor, and whether its code uses all of its own instructions."""

_NODES = "sys/class/kfd/kfd/topology/nodes"
"""Folders of properties of processors and GPUs, as AMD's driver lists them."""


@dataclass(frozen=True)
class Gpu:
    """A GPU by its driver's name; its processor as compilers name it (sm_90, gfx90a), its multiprocessors, bytes of its
    memory."""

    name: str
    processor: str
    multiprocessors: int
    memory: int

    def runs(self, processor: str) -> bool:
        """Whether machine code for a processor runs here: for this one, of NVIDIA's also for an earlier one of the same
        generation; code for all of a processor's own instructions (sm_90a) runs on that processor only."""
        here, there = _NVIDIA.fullmatch(self.processor), _NVIDIA.fullmatch(processor)
        if here is None or there is None:
            return self.processor == processor
        generation, revision, own = there.groups()
        return here[1] == generation and (here[2] == revision or (not own and here[2] > revision))


def first_library(names: Sequence[str]) -> ctypes.CDLL | None:
    """The first of some libraries that is installed."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def gpus(root: Path = Path("/")) -> tuple[Gpu, ...]:
    """The GPUs of this machine, NVIDIA's first, each maker's in its driver's order; `root` is where /sys is."""
    return (*_nvidia(), *_amd(root))


def _nvidia() -> tuple[Gpu, ...]:
    library, count = first_library(LIBRARIES), c_int()
    if library is None or library.cuInit(0) or library.cuDeviceGetCount(byref(count)):
        return ()
    return tuple(_told(library, number) for number in range(count.value))


def _told(library: ctypes.CDLL, number: int) -> Gpu:
    device, text, memory = c_int(), ctypes.create_string_buffer(256), c_size_t()
    library.cuDeviceGet(byref(device), number)
    library.cuDeviceGetName(text, 256, device)
    library.cuDeviceTotalMem_v2(byref(memory), device)

    def attribute(which: int) -> int:
        value = c_int()
        library.cuDeviceGetAttribute(byref(value), which, device)
        return value.value

    processor = f"sm_{attribute(_MAJOR)}{attribute(_MINOR)}"
    return Gpu(text.value.decode(errors="replace"), processor, attribute(_MULTIPROCESSORS), memory.value)


def _amd(root: Path) -> tuple[Gpu, ...]:
    folders = sorted((root / _NODES).glob("[0-9]*"), key=lambda folder: int(folder.name))
    found = []
    for folder in folders:
        facts = _properties(folder / "properties")
        version = facts.get("gfx_target_version", 0)
        if version:
            processor = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
            units = facts.get("simd_count", 0) // max(1, facts.get("simd_per_cu", 1))
            memory = sum(_properties(bank).get("size_in_bytes", 0) for bank in folder.glob("mem_banks/*/properties"))
            found.append(Gpu(_text(folder / "name") or processor, processor, units, memory))
    return tuple(found)


def _properties(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in _text(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
