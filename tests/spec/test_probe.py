"""The probed device file: complete, commented, cached; failures are told and never leave half a file."""

import json
import logging
import os
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from tilec.errors import UnavailableError
from tilec.spec import measure, probe
from tilec.spec.device import DeviceSpec
from tilec.spec.device_text import device_text, two_digits
from tilec.spec.host import Cache, DotUnit, Host
from tilec.spec.located import parse_yaml, validate
from tilec.spec.measure import Rate
from tilec.spec.probe_record import probe_record

HOST = Host(
    model='A "quoted" CPU',
    triple="x86_64-unknown-linux-gnu",
    processor="znver2",
    features=("+avx2", "-avx512f"),
    vector_bytes=32,
    vector_registers=16,
    vector_source="avx2 and fma in /proc/cpuinfo",
    units=(DotUnit("vpmaddwd", "i16, i16", "i32", 2),),
    cores=8,
    caches=(
        Cache(3, 16 << 20, 64, 2, "sysfs"),
        Cache(2, 512 << 10, 64, 8, "sysfs"),
        Cache(1, 32 << 10, 64, 8, "sysfs"),
    ),
    memory=16_700_000_000,
)
TIMINGS: dict[str, Any] = {
    "bandwidth": {"dram": [2.14e10, 4.56e10], "l3": [1e11, 4e11], "l2": [1.2e11, 9.6e11]},
    "flops": 1.126e12,
    "busy": 0.02,
    "spread": 0.04,
}


def device(host: Host = HOST, timings: dict[str, Any] = TIMINGS) -> DeviceSpec:
    return validate(DeviceSpec, parse_yaml(device_text(host, timings), "host"))


def test_the_file_is_a_device() -> None:
    spec = device()
    assert spec.level_names == ("dram", "l3", "l2", "l1", "reg")
    assert [spec.instances(name) for name in spec.level_names] == [1, 2, 8, 8, 8]
    assert (spec.cores, spec.core_level) == (8, "l2")
    assert [level.scope for level in spec.levels] == ["", "l3", "core", "", ""]
    assert spec.level("dram").capacity == 17_000_000_000
    assert spec.bandwidth("dram") == 46_000_000_000
    assert spec.bandwidth("dram", 1) == 21_000_000_000
    assert spec.peak(("f32", "f32"), "f32") == 1_100_000_000_000
    assert spec.bandwidth("l1") == 2 * 1_100_000_000_000
    assert spec.level("reg").capacity == 512
    assert spec.target.features == ("+avx2", "-avx512f")


def test_a_cache_delivers_at_least_what_comes_through_it() -> None:
    shared = {"dram": [1.4e10, 4.6e10], "l3": [2.5e10, 3e10], "l2": [2.4e10, 9.6e11]}  # most of L3 is other people's
    spec = device(timings={**TIMINGS, "bandwidth": shared})
    assert [spec.bandwidth(level) for level in ("dram", "l3", "l2")] == [46e9, 46e9, 960e9]
    assert [spec.bandwidth(level, 1) for level in ("dram", "l2")] == [14e9, 25e9]


@pytest.mark.parametrize(
    "host",
    [
        replace(HOST, cores=1, caches=tuple(replace(cache, instances=1) for cache in HOST.caches)),
        replace(HOST, cores=4, caches=(Cache(1, 64 << 10, 128, 4, "assumed"),)),
        replace(HOST, cores=4, caches=(Cache(2, 4 << 20, 128, 1, "sysfs"), Cache(1, 64 << 10, 128, 4, "sysfs"))),
        replace(HOST, caches=(), cores=1),
    ],
)
def test_other_shapes_of_machine(host: Host) -> None:
    assert device(host).cores == host.cores


_WORDS = ("name", "scope", "launch_level", "core_level", "triple", "inputs", "accumulator")


def test_every_number_says_its_source() -> None:
    for line in device_text(HOST, TIMINGS).splitlines()[3:]:
        key, _, value = line.partition(":")
        if any(c.isdigit() for c in value) and key.split()[-1] not in _WORDS:
            assert "#" in line or "description" in line


def test_two_digits() -> None:
    assert [two_digits(value) for value in (12345.0, 0.0, 99.9e9, 4.4)] == [12000, 0, 100_000_000_000, 4]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Host]:
    """Timings are replaced and counted; the cache is in `tmp_path`."""
    calls: list[Host] = []

    def timings(host: Host) -> dict[str, Any]:
        calls.append(host)
        return TIMINGS

    monkeypatch.setattr(probe, "read_host", lambda: HOST)
    monkeypatch.setattr(probe, "_timings", timings)
    monkeypatch.setattr(probe, "cache_folder", lambda: tmp_path / "cache")
    return calls


def test_probed_once_then_cached(counted: list[Host]) -> None:
    first = probe.probed_text()
    assert probe.probed_text() == first
    assert len(counted) == 1
    assert _figures(probe.probed_text(again=True)) == _figures(first)
    assert len(counted) == 2


def _figures(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("probe:")]


def test_processes_that_start_together_measure_once(counted: list[Host], monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    callers = [threading.Thread(target=lambda: texts.append(probe.probed_text())) for _ in range(3)]
    known, start = probe.known_text, threading.Barrier(3)

    def all_know_nothing() -> str | None:
        text = known()
        if not start.broken and text is None:
            with suppress(threading.BrokenBarrierError):
                start.wait(1)
            start.abort()
        return text

    monkeypatch.setattr(probe, "known_text", all_know_nothing)
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(counted) == 1
    assert len(set(texts)) == 1


def test_a_cache_that_cannot_be_written_is_told(
    counted: list[Host], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    with caplog.at_level(logging.WARNING, logger="tilec"):
        assert probe.probed_text().startswith("# yaml-language-server")
    assert "the probed device is not cached: cannot write host-" in caplog.text


def test_measurements_of_a_busy_machine_are_told(
    counted: list[Host], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="tilec"):
        quiet = probe.probed_text()
    assert not caplog.text
    monkeypatch.setattr(probe, "_timings", lambda host: {**TIMINGS, "flops": 4e11, "busy": 0.4})
    with caplog.at_level(logging.WARNING, logger="tilec"):
        assert probe.probed_text(again=True) == quiet
    assert "its earlier, undisturbed measurement stays" in caplog.text
    probe._kept(HOST).unlink()
    with caplog.at_level(logging.WARNING, logger="tilec"):
        busy = probe.probed_text()
    assert "other work slowed this machine while it was measured" in caplog.text
    record = probe_record(busy)
    assert record is not None
    assert (record.busy, record.disturbed) == (0.4, True)
    assert _figures(busy) != _figures(quiet)


@pytest.mark.parametrize("disturbance", [{"busy": 0.4}, {"spread": 0.4}])
def test_a_disturbed_measurement_is_repeated_when_the_machine_is_idle(
    counted: list[Host], monkeypatch: pytest.MonkeyPatch, disturbance: dict[str, float]
) -> None:
    quiet = probe._timings
    idle = 0.2
    monkeypatch.setattr(probe, "idle_share", lambda: idle)
    monkeypatch.setattr(probe, "_timings", lambda host: {**TIMINGS, **disturbance})
    probe.probed_text()
    monkeypatch.setattr(probe, "_timings", quiet)
    idle = 1.0
    probe.probed_text()
    assert not counted, "it was measured just now"
    os.utime(probe._kept(HOST), (1, 1))
    idle = 0.2
    probe.probed_text()
    assert not counted, "the machine is busy"
    idle = 1.0
    text = probe.probed_text()
    assert len(counted) == 1
    assert probe.known_text() == text
    os.utime(probe._kept(HOST), (1, 1))
    assert probe.probed_text() == text
    assert len(counted) == 1


def test_the_circumstances_are_part_of_the_device_and_count_in_no_plan() -> None:
    quiet, busy = device(), device(timings={**TIMINGS, "busy": 0.5})
    assert busy.probe is not None
    assert busy.probe.disturbed
    assert quiet.probe is not None
    assert not quiet.probe.disturbed
    assert quiet.digest() == busy.digest()


def test_the_cache_follows_xdg(tmp_path: Path) -> None:
    assert probe.cache_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "tilec"
    assert probe.cache_folder({}) == Path.home() / ".cache" / "tilec"


@pytest.mark.probes
def test_a_machine_that_cannot_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise subprocess.CalledProcessError(1, "python", stderr="Traceback\nMemoryError: no")

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(UnavailableError, match="this machine cannot be measured: MemoryError: no") as error:
        probe._timings(HOST)
    assert error.value.exit_code == 6


@pytest.mark.probes
def test_the_timing_process_answers_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[dict[str, Any]] = []

    def run(command: list[str], env: dict[str, str], **options: Any) -> subprocess.CompletedProcess[str]:
        requests.append(json.loads(command[-1]))
        assert env["OPENBLAS_NUM_THREADS"] == "1"
        assert "OPENBLAS_CORETYPE" not in env
        return subprocess.CompletedProcess(command, 0, json.dumps(TIMINGS), "")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    assert probe._timings(HOST) == TIMINGS
    assert requests[0]["cores"] == 8
    assert list(requests[0]["sizes"]) == ["dram", "l3", "l2"]
    assert requests[0]["sizes"]["dram"][0] >= 4 * 32 << 20


def test_measuring_covers_every_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SECONDS", 0.001)
    monkeypatch.setattr(measure, "GEMM_SIZE", 64)
    result = measure.measure({"dram": [1 << 20, 1 << 19], "l2": [1 << 14, 1 << 14]}, cores=2)
    assert set(result["bandwidth"]) == {"dram", "l2"}
    assert all(value > 0 for pair in result["bandwidth"].values() for value in pair)
    assert result["flops"] > 0
    assert 0 <= result["busy"] <= 1
    assert 0 <= result["spread"] < 1


def test_a_repetition_beside_other_work_counts_only_where_there_is_no_better(monkeypatch: pytest.MonkeyPatch) -> None:
    disturbed = Rate(False, 7.0, 0.5)
    rounds = chain([Rate(False, 9.0), Rate(True, 3.0), Rate(False, 8.0), Rate(True, 4.0)], repeat(disturbed))
    monkeypatch.setattr(measure, "SECONDS", 0.005)
    monkeypatch.setattr(measure, "_round", lambda works: next(rounds))
    best, spread = measure.rate(measure.multiplying, 1)
    assert best == Rate(True, 4.0)
    assert 0 < spread < 1
    assert measure.rate(measure.multiplying, 1) == (disturbed, 0.0)


def test_threads_that_wait_for_a_core_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    work = (lambda: time.sleep(0.01), 1.0)
    assert not measure._round([work, work]).quiet
    monkeypatch.setattr(time, "thread_time", time.perf_counter)
    assert measure._round([work]).quiet
