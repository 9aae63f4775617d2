"""Facts of a machine, read from made-up /proc and /sys trees."""

import os
import platform
from pathlib import Path

import pytest

from tilec.spec.host import Host, read_host

ZEN5 = (
    "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n"
    "flags\t\t: sse4_1 sse4_2 avx avx2 fma f16c avx512f avx512cd avx512bw avx512dq avx512vl avx512_vnni\n\n"
    "processor\t: 1\nmodel name\t: another\n"
)


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


def caches(cpu: int, shared: str) -> dict[str, str]:
    rows = {
        0: ("1", "Data", "48K", str(cpu)),
        1: ("1", "Instruction", "32K", str(cpu)),
        2: ("2", "Unified", "1024K", str(cpu)),
        3: ("3", "Unified", "32768K", shared),
    }
    folder = f"sys/devices/system/cpu/cpu{cpu}/cache/index"
    return {
        f"{folder}{index}/{key}": value
        for index, row in rows.items()
        for key, value in zip(
            ("level", "type", "size", "shared_cpu_list", "coherency_line_size"), (*row, "64"), strict=True
        )
    }


@pytest.fixture
def four_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


@pytest.mark.usefixtures("four_cpus")
def test_caches_and_cores(tmp_path: Path) -> None:
    files = {"proc/cpuinfo": ZEN5}
    for cpu in range(4):
        files |= caches(cpu, "0-1" if cpu < 2 else "2-3")
    host = read_host(tree(tmp_path, files))
    assert host.model == "AMD EPYC"
    assert host.processor == "znver5"
    assert host.cores == 4
    assert [(c.level, c.capacity, c.instances, c.source) for c in host.caches] == [
        (3, 32 << 20, 2, "sysfs"),
        (2, 1 << 20, 4, "sysfs"),
        (1, 48 << 10, 4, "sysfs"),
    ]
    assert (host.vector_bytes, host.vector_registers) == (64, 32)
    assert {"+avx512vnni", "-avx512bf16"} <= set(host.features)


@pytest.mark.usefixtures("four_cpus")
def test_two_threads_of_a_core_count_once(tmp_path: Path) -> None:
    siblings = {
        f"sys/devices/system/cpu/cpu{c}/topology/thread_siblings_list": f"{c % 2},{c % 2 + 2}" for c in range(4)
    }
    assert read_host(tree(tmp_path, siblings)).cores == 2


@pytest.mark.usefixtures("four_cpus")
@pytest.mark.parametrize(("quota", "cores"), [("max 100000", 4), ("150000 100000", 2), ("1000 100000", 1)])
def test_a_container_quota_limits_cores(tmp_path: Path, quota: str, cores: int) -> None:
    assert read_host(tree(tmp_path, {"sys/fs/cgroup/cpu.max": quota})).cores == cores


@pytest.mark.usefixtures("four_cpus")
def test_a_container_limits_memory(tmp_path: Path) -> None:
    assert read_host(tree(tmp_path, {"sys/fs/cgroup/memory.max": "1048576"})).memory == 1 << 20
    assert read_host(tree(tmp_path, {"sys/fs/cgroup/memory.max": "max"})).memory > 1 << 20


@pytest.mark.usefixtures("four_cpus")
def test_without_proc_and_sys(tmp_path: Path) -> None:
    host = read_host(tmp_path)
    assert [cache.level for cache in host.caches] == [3, 2, 1]
    assert all(cache.source in ("sysconf", "assumed") and cache.capacity > 0 for cache in host.caches)
    assert (host.processor, host.features, host.vector_bytes) == ("x86-64", (), 16)


@pytest.mark.usefixtures("four_cpus")
@pytest.mark.parametrize(
    ("info", "processor", "width"),
    [
        ("vendor_id: GenuineIntel\ncpu family: 6\nmodel: 143\nflags: avx512f", "sapphirerapids", 64),
        ("vendor_id: GenuineIntel\ncpu family: 6\nmodel: 1\nflags: avx2 fma bmi2", "x86-64-v3", 32),
        ("vendor_id: AuthenticAMD\ncpu family: 25\nmodel: 97\nflags: avx2 fma", "znver4", 32),
        ("vendor_id: AuthenticAMD\ncpu family: 25\nmodel: 33\nflags: avx2 fma", "znver3", 32),
        ("vendor_id: AuthenticAMD\ncpu family: 23\nmodel: 113\nflags: avx2 fma", "znver2", 32),
        ("vendor_id: New\ncpu family: 99\nflags: avx512f avx512bw avx512dq avx512vl avx512cd", "x86-64-v4", 64),
        ("vendor_id: New\ncpu family: x\nflags: sse4_2", "x86-64-v2", 16),
    ],
)
def test_processor_names(tmp_path: Path, info: str, processor: str, width: int) -> None:
    host = read_host(tree(tmp_path, {"proc/cpuinfo": info}))
    assert (host.processor, host.vector_bytes) == (processor, width)


def test_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    info = "processor : 0\nFeatures : fp asimd asimddp\nCPU part : 0xd0c\n"
    host = read_host(tree(tmp_path, {"proc/cpuinfo": info}))
    assert (host.vector_bytes, host.vector_registers) == (16, 32)
    assert host.triple.startswith("aarch64-")
    assert {"+neon", "+dotprod", "-i8mm"} == set(host.features) - {"-fullfp16", "-bf16"}


def test_the_key_tells_machines_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")

    def key(name: str, info: str) -> str:
        return read_host(tree(tmp_path / name, {"proc/cpuinfo": info})).key

    assert key("a", ZEN5) == key("b", ZEN5)
    assert key("c", ZEN5.replace("avx512f ", "")) != key("a", ZEN5)


def test_this_machine() -> None:
    host = read_host()
    assert isinstance(host, Host)
    assert host.cores >= 1
    assert host.memory > 1 << 28
