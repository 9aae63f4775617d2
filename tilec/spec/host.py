"""Facts of the operating system about this machine: cores, SIMD, caches, memory; each with a fallback."""

import os
import platform
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from tilec.artifact import digest_object
from tilec.spec.cpus import usable_cpus

_FORM = 3
"""Version of the device file of a machine: counts up when earlier versions of tilec cannot read it."""


@dataclass(frozen=True)
class Cache:
    """One level of data cache: bytes of one instance, instances among the usable cores, who said so."""

    level: int
    capacity: int
    line: int
    instances: int
    source: str


@dataclass(frozen=True)
class DotUnit:
    """An instruction that adds the products of the elements of words to sums: its types and the elements of a word."""

    name: str
    inputs: str
    accumulator: str
    elements: int


@dataclass(frozen=True)
class Host:
    """This machine as far as the operating system tells; `memory` in bytes, `vector_bytes` of one register."""

    model: str
    triple: str
    processor: str
    features: tuple[str, ...]
    vector_bytes: int
    vector_registers: int
    vector_source: str
    units: tuple[DotUnit, ...]
    cores: int
    caches: tuple[Cache, ...]
    memory: int

    @property
    def key(self) -> str:
        """Short digest that tells machines apart that share a cache folder, and forms of their device files."""
        return digest_object({"form": _FORM, **asdict(self)})[:16]


def read_host(root: Path = Path("/")) -> Host:
    """The facts of this machine; `root` is where /proc and /sys are looked for."""
    info = _cpuinfo(root)
    machine = platform.machine().lower()
    flags = frozenset((info.get("flags") or info.get("Features") or "").split())
    cpus = _usable_cpus(root)
    width, registers, source = _vector(machine, flags)
    return Host(
        model=info.get("model name") or platform.processor() or machine or "unknown",
        triple=_triple(machine),
        processor=_processor(machine, info, flags),
        features=_features(machine, flags),
        vector_bytes=width,
        vector_registers=registers,
        vector_source=source,
        units=_units(machine, flags),
        cores=len(cpus),
        caches=_caches(root, cpus),
        memory=_memory(root),
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _cpuinfo(root: Path) -> dict[str, str]:
    """The first processor's entry of /proc/cpuinfo."""
    first = (_read(root / "proc/cpuinfo") or "").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _usable_cpus(root: Path) -> list[int]:
    """One logical CPU for each core that this process may use, no more than its cgroup's quota."""
    topology = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    cores: dict[str, int] = {}
    for cpu in usable_cpus():
        cores.setdefault(_read(root / topology.format(cpu)) or str(cpu), cpu)
    quota, _, period = (_read(root / "sys/fs/cgroup/cpu.max") or "max").partition(" ")
    if quota.isdigit() and period.isdigit():
        return list(cores.values())[: max(1, -(-int(quota) // int(period)))]
    return list(cores.values())


def _caches(root: Path, cpus: list[int]) -> tuple[Cache, ...]:
    """Data caches, outermost first."""
    seen: dict[int, tuple[int, int, set[str]]] = {}
    for cpu in cpus:
        for folder in sorted(root.glob(f"sys/devices/system/cpu/cpu{cpu}/cache/index*")):
            size = re.fullmatch(r"(\d+)K", _read(folder / "size") or "")
            level = _read(folder / "level") or ""
            if size and level.isdigit() and _read(folder / "type") in ("Data", "Unified"):
                line = int(_read(folder / "coherency_line_size") or 64)
                shared = seen.setdefault(int(level), (int(size[1]) * 1024, line, set()))[2]
                shared.add(_read(folder / "shared_cpu_list") or str(cpu))
    if seen:
        return tuple(
            Cache(level, size, line, len(shared), "sysfs")
            for level, (size, line, shared) in sorted(seen.items(), reverse=True)
        )
    return _caches_without_sysfs(len(cpus))


def _caches_without_sysfs(cores: int) -> tuple[Cache, ...]:
    found = []
    names = getattr(os, "sysconf_names", {})
    for level, name, assumed in ((3, "LEVEL3_", 8 << 20), (2, "LEVEL2_", 512 << 10), (1, "LEVEL1_D", 32 << 10)):
        known = f"SC_{name}CACHE_SIZE"
        size = os.sysconf(known) if known in names else 0
        source = "sysconf" if size > 0 else "assumed"
        found.append(Cache(level, size if size > 0 else assumed, 64, 1 if level == 3 else cores, source))
    return tuple(found)


def _memory(root: Path) -> int:
    """Bytes of memory that this process may use."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 8 << 30
    limit = _read(root / "sys/fs/cgroup/memory.max") or "max"
    return min(physical, int(limit)) if limit.isdigit() else physical


def _vector(machine: str, flags: frozenset[str]) -> tuple[int, int, str]:
    """Bytes of a vector register, how many there are, and why we think so."""
    if machine in ("aarch64", "arm64"):
        return 16, 32, "NEON, part of AArch64"
    if "avx512f" in flags:
        return 64, 32, "avx512f in /proc/cpuinfo"
    if {"avx2", "fma"} <= flags:
        return 32, 16, "avx2 and fma in /proc/cpuinfo"
    return 16, 16, "no wider SIMD found in /proc/cpuinfo"


def _units(machine: str, flags: frozenset[str]) -> tuple[DotUnit, ...]:
    """Instructions for words, by what the system says of the processor."""
    if machine in ("aarch64", "arm64"):
        return (DotUnit("sdot", "i8, i8", "i32", 4),) if "asimddp" in flags else ()
    found = []
    if "avx512_vnni" in flags or ("avx_vnni" in flags and "avx512f" not in flags):
        found.append(DotUnit("vpdpbusd", "u8, i8", "i32", 4))
    if "avx512_bf16" in flags:
        found.append(DotUnit("vdpbf16ps", "bf16, bf16", "f32", 2))
    if "avx2" in flags:
        found.append(DotUnit("vpmaddwd", "i16, i16", "i32", 2))
    return tuple(found)


def _triple(machine: str) -> str:
    if sys.platform == "darwin":
        return f"{machine}-apple-darwin"
    return f"{machine or 'x86_64'}-unknown-linux-gnu"


_X86_FEATURES = {
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
    "avx": "avx",
    "avx2": "avx2",
    "fma": "fma",
    "f16c": "f16c",
    "avx512f": "avx512f",
    "avx512cd": "avx512cd",
    "avx512bw": "avx512bw",
    "avx512dq": "avx512dq",
    "avx512vl": "avx512vl",
    "avx512vbmi": "avx512vbmi",
    "avx512_vbmi2": "avx512vbmi2",
    "avx512_vnni": "avx512vnni",
    "avx512_bf16": "avx512bf16",
    "avx512_fp16": "avx512fp16",
    "avx_vnni": "avxvnni",
}
_ARM_FEATURES = {"asimd": "neon", "asimddp": "dotprod", "asimdhp": "fullfp16", "bf16": "bf16", "i8mm": "i8mm"}


def _features(machine: str, flags: frozenset[str]) -> tuple[str, ...]:
    """SIMD features in LLVM's words; what is missing is switched off, a hypervisor may hide what the model has."""
    names = _ARM_FEATURES if machine in ("aarch64", "arm64") else _X86_FEATURES
    if not flags:
        return ()
    return tuple(("+" if flag in flags else "-") + name for flag, name in names.items())


_INTEL = {
    "haswell": (0x3C, 0x3F, 0x45, 0x46),
    "broadwell": (0x3D, 0x47, 0x4F, 0x56),
    "skylake": (0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6),
    "skylake-avx512": (0x55,),
    "icelake-server": (0x6A, 0x6C),
    "icelake-client": (0x7D, 0x7E),
    "tigerlake": (0x8C, 0x8D),
    "alderlake": (0x97, 0x9A, 0xB7, 0xBA, 0xBF),
    "sapphirerapids": (0x8F,),
    "emeraldrapids": (0xCF,),
    "graniterapids": (0xAD, 0xAE),
}
_ARM_PARTS = {
    "0xd08": "cortex-a72",
    "0xd0c": "neoverse-n1",
    "0xd40": "neoverse-v1",
    "0xd49": "neoverse-n2",
    "0xd4f": "neoverse-v2",
}


def _processor(machine: str, info: dict[str, str], flags: frozenset[str]) -> str:
    """LLVM's name of the processor, a generic one when the model is unknown."""
    if machine in ("aarch64", "arm64"):
        return "apple-m1" if sys.platform == "darwin" else _ARM_PARTS.get(info.get("CPU part", ""), "generic")
    family, model = (int(info[name]) if info.get(name, "").isdigit() else 0 for name in ("cpu family", "model"))
    if info.get("vendor_id") == "AuthenticAMD":
        amd = _amd(family, model)
        if amd:
            return amd
    if info.get("vendor_id") == "GenuineIntel" and family == 6:
        for name, models in _INTEL.items():
            if model in models:
                return name
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"} <= flags:
        return "x86-64-v4"
    if {"avx2", "fma", "bmi2"} <= flags:
        return "x86-64-v3"
    return "x86-64-v2" if "sse4_2" in flags else "x86-64"


def _amd(family: int, model: int) -> str | None:
    match family:
        case 0x17:
            return "znver1" if model < 0x30 else "znver2"
        case 0x19:
            return "znver4" if 0x10 <= model <= 0x1F or 0x60 <= model <= 0xAF else "znver3"
        case 0x1A:
            return "znver5"
    return None
