"""How idle the usable processors are, from a made-up /proc/stat."""

import os
from pathlib import Path

import pytest

from tilec.spec import cpus

STAT = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 {} 0 0 {} 0 0 0 0 0 0\ncpu1 50 0 0 {} 0 0 0 0 0 0\ncpu2 {} 0 0 0 0 0 0 0 0 0\n"


def test_the_idle_share_counts_the_usable_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    stat.write_text(STAT.format(0, 0, 0, 0))
    later = STAT.format(3, 7, 10, 1000)
    monkeypatch.setattr(cpus, "usable_cpus", lambda: [0, 1])
    monkeypatch.setattr(cpus.time, "sleep", lambda _seconds: stat.write_text(later))
    assert cpus.idle_share(stat=stat) == pytest.approx(17 / 20)


def test_the_load_stands_in_where_the_system_keeps_no_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "usable_cpus", lambda: [0, 1])
    monkeypatch.setattr(os, "getloadavg", lambda: (0.5, 0.0, 0.0))
    assert cpus.idle_share(stat=tmp_path / "none") == 0.75


def test_work_is_divided_where_processes_can_be_copied_and_others_need_no_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cpus, "usable_cpus", lambda: [0, 1, 2])
    monkeypatch.setattr(cpus.sys, "platform", "linux")
    assert cpus.process_count() == 3
    with cpus.without_children():
        assert cpus.process_count() == 1
    monkeypatch.setattr(cpus.sys, "platform", "darwin")
    assert cpus.process_count() == 1
