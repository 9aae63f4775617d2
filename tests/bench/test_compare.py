"""Timing in turns: A B A B, in fresh processes, on one set of buffers."""

import os
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tilec.bench import compare, peers
from tilec.bench.compare import OURS, Timing, time_interleaved
from tilec.bench.peers import GPU_PROVIDERS, PEERS
from tilec.bench.runners import Runner, peak_memory
from tilec.errors import UsageError
from tilec.verify.remote import Remote


@pytest.fixture(autouse=True, scope="module")
def warm_processes():
    """Here they begin as they do for users."""


def fake(path: Path, seconds: float, who: str) -> Runner:
    """A runner that takes `seconds` and writes into a log when it runs."""

    def run() -> None:
        with path.open("a") as log:
            log.write(f"{who} {os.getpid()} {time.monotonic()}\n")
        time.sleep(seconds)

    return Runner(run)


def ours(folder: Path, feeds: object, threads: int) -> Runner:
    return fake(folder / "log", 0.001, "ours")


def theirs(model: Path, feeds: object, threads: int) -> Runner:
    return fake(model.parent / "log", 0.002, "theirs")


@pytest.mark.feature("W60")
def test_runners_take_turns_in_fresh_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(compare, "compiled", ours)
    monkeypatch.setattr(compare, "PAUSE", 0.0)
    monkeypatch.setitem(PEERS, "other", theirs)
    monkeypatch.setattr(peers, "find_spec", lambda name: name)
    steps = []
    timing = Timing(threads=1, processes=2, rounds=3, seconds=0.01)
    found = time_interleaved(
        tmp_path, tmp_path / "m.onnx", {}, ["other"], timing, lambda done, total: steps.append((done, total))
    )
    assert {name: len(times) for name, times in found.rounds.items()} == {OURS: 6, "other": 6}
    assert steps == [(done, 6) for done in range(1, 7)]
    assert 0.001 <= found.seconds(OURS) < found.seconds("other")
    assert set(found.needs) == {OURS, "other"}
    assert found.ratios()["other"].median == pytest.approx(found.seconds("other") / found.seconds(OURS), rel=0.3)
    log = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    pids = list(dict.fromkeys(pid for _, pid, _ in log))
    assert len(pids) == 4
    for both in (pids[:2], pids[2:]):
        turns = [who for who, pid, _ in log if pid in both]
        changes = sum(a != b for a, b in pairwise(turns))
        assert changes == 7  # one turn each to calibrate and in each of three rounds


def test_unknown_peer(tmp_path):
    with pytest.raises(UsageError, match="onnxruntme") as found:
        time_interleaved(tmp_path, tmp_path, {}, ["onnxruntme"], Timing(1))
    assert found.value.hint == "Did you mean 'onnxruntime'?"


def test_calibration_fills_the_time_and_a_round_counts_the_median():
    calls = []

    def run() -> None:
        calls.append(None)
        time.sleep(0.002)

    runner = Runner(run)
    assert 2 <= runner.calibrate(0.02) <= 10
    calls.clear()
    assert runner.round(5) >= 0.002
    assert len(calls) == 6


@pytest.mark.parametrize("name", sorted(PEERS.keys() - GPU_PROVIDERS.keys()))
def test_peers_run_on_bound_buffers(tmp_path, name):
    from cli.models import mlp

    pytest.importorskip(name)
    runner = PEERS[name](mlp(tmp_path / "m.onnx"), {"x": np.ones((4, 16), np.float32)}, 1)
    assert runner.round(3) > 0
    assert runner.needs().seconds > 0


def test_memory_is_that_of_the_process_itself():
    """A process that a large one starts does not begin with what that one had."""
    ballast = np.ones(300 << 20, np.uint8)
    with Remote("a small process", Runner, print) as small:
        small.ready()
        assert small.call("needs").bytes < 200 << 20
    assert peak_memory() > ballast.nbytes
