"""Findings about made-up machines."""

import os
import platform
from pathlib import Path

import pytest

from tilec.errors import ConfigError
from tilec.report.doctor import Finding, examined, exit_code_of, machine
from tilec.report.doctor.cache import cache

INFO = "processor\t: 0\nmodel name\t: Small\nflags\t\t: {}\n"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    (tmp_path / "proc").mkdir()
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "proc/cpuinfo").write_text(INFO.format("sse4_2 avx avx2 fma"))
    return tmp_path


def only(findings):
    (finding,) = findings
    return finding


def test_cpu(root):
    found = only(machine.cpu(root))
    assert found.status == "ok"
    assert "vectors of 32 bytes" in found.text
    assert found.text.endswith(": sse4.2 avx avx2 fma")
    (root / "proc/cpuinfo").write_text(INFO.format("sse4_2"))
    found = only(machine.cpu(root))
    assert found.status == "warning"
    assert found.text.endswith("avx2 and fma are not there")
    assert found.fix


def test_limits_on_threads(root):
    found = only(machine.threads(root, {}))
    assert (found.status, found.text) == ("info", "2 cores for 8 logical CPUs; affinity leaves 2 of 8 logical CPUs")
    (root / "sys/fs/cgroup/cpu.max").write_text("150000 100000\n")
    assert only(machine.threads(root, {})).text.endswith("; the control group leaves 1.5")
    (root / "sys/fs/cgroup/cpu.max").write_text("max 100000\n")
    assert "control group" not in only(machine.threads(root, {})).text


@pytest.mark.parametrize(("asked", "status"), [("many", "error"), ("0", "error"), ("3", "warning"), ("2", None)])
def test_threads_asked_for(root, asked, status):
    _, *found = machine.threads(root, {"TILEC_THREADS": asked})
    assert [finding.status for finding in found] == ([status] if status else [])
    assert exit_code_of(found) == (ConfigError.exit_code if status == "error" else 0)


def test_little_memory(root):
    (root / "sys/fs/cgroup/memory.max").write_text(str(1 << 30))
    found = only(machine.memory(root))
    assert (found.status, found.text) == ("warning", "1.0 GiB may be used")
    assert found.fix == "Give at least 2GiB: compilers need it."


def test_compilers_are_information():
    said = {"nvcc": "nvcc: NVIDIA\nCuda compilation tools, release 13.0, V13.0.88\n", "nvidia-smi": "H200, 575.1\n"}
    said["g++"] = "g++ (Debian) 12.2.0\nCopyright\n"
    found = list(machine.compilers(lambda command: said.get(command[0])))
    assert [finding.status for finding in found] == ["info"] * 4
    assert [finding.text.split(";")[0] for finding in found] == [
        "Cuda compilation tools, release 13.0, V13.0.88",
        "not found",
        "g++ (Debian) 12.2.0",
        "H200, 575.1",
    ]
    assert [finding.text for finding in machine.compilers(lambda command: None)][2].endswith("not their kernels")


def test_what_a_command_prints():
    assert machine.printed(["echo", "here"]) == "here\n"
    assert machine.printed(["false"]) is None
    assert machine.printed(["no-such-command"]) is None


def test_a_machine_that_was_measured_beside_other_work(monkeypatch):
    record = 'name: host\nprobe: {time: "2026-01-02T03:04:05Z", busy: 0.55, spread: 0.30} # other work\n'
    monkeypatch.setattr("tilec.spec.probe.known_text", lambda: record)
    finding = only(machine.measured())
    assert finding.status == "warning"
    assert "it took 55% of the time, repetitions differ by 30%" in finding.text
    assert finding.fix == "Run `tilec device probe` when it is idle."
    monkeypatch.setattr("tilec.spec.probe.known_text", lambda: record.replace("0.55", "0.05").replace("0.30", "0.1"))
    assert only(machine.measured()).status == "ok"


def test_a_machine_that_was_not_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert only(machine.measured()).fix == "To do it now: tilec device probe"


def test_the_cache(tmp_path, monkeypatch):
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects/tilec_add-0123456789abcdef.o").write_bytes(bytes(2048))
    found = only(cache(tmp_path, 1 << 30))
    assert (found.status, found.text) == ("ok", f"{tmp_path}: 2.0 KiB, compiled models at most 1.0 GiB")
    monkeypatch.setattr("tilec.report.doctor.cache._LEAST_FREE", 1 << 60)
    assert [finding.status for finding in cache(tmp_path, 1)] == ["ok", "warning"]


def test_a_cache_that_cannot_be_written(tmp_path: Path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file/tilec", *(Path(place) for place in ("/proc/none",) if Path("/proc").is_dir())):
        found = only(cache(folder, 1))
        assert found.status == "warning"
        assert "XDG_CACHE_HOME" in found.fix


def test_a_cache_that_is_not_there_yet_is_not_made(tmp_path):
    assert only(cache(tmp_path / "none/tilec", 1)).status == "ok"
    assert not list(tmp_path.iterdir())


def test_a_check_that_cannot_be_made_is_a_finding():
    def missing():
        raise ModuleNotFoundError("No module named 'pydantic'", name="pydantic")
        yield

    def wrong():
        raise ConfigError("it is no size", "TILEC_CACHE_LIMIT", "Write 20GiB.")
        yield

    first, second, third = examined([("a", missing), ("b", wrong), ("c", lambda: [Finding("c", "ok", "fine")])])
    assert (first.status, first.fix, first.exit_code) == ("error", "Install it: pip install 'pydantic'", 6)
    assert (second.text, second.fix, second.exit_code) == ("TILEC_CACHE_LIMIT: it is no size", "Write 20GiB.", 2)
    assert exit_code_of([third]) == 0
    assert exit_code_of([first, second]) == 6
