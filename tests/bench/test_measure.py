"""Plans are built side by side and timed in turns; what fails takes nothing else down, and nothing is left behind."""

import multiprocessing
import tempfile
from pathlib import Path

import pytest

from bench.plans import FaultyBuilder, FaultyTimer, Homeless, Watched, host, product
from tilec.bench.measure import Bench, Effort, measuring
from tilec.errors import UnavailableError
from tilec.spec.recipe import CodegenOptions

QUICK = Effort(workers=2, seconds=0.002)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.feature("W20", "W40")
@pytest.mark.parametrize("workers", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_every_plan_gets_its_seconds(temporary: Path, workers: int) -> None:
    with measuring(host(), CodegenOptions(threads=1), Effort(workers, 0.002)) as measure:
        first = measure([product(6), product(48), product(16)])
        second = measure([product(24)])
        processes = len(multiprocessing.active_children())
    assert all(seconds is not None and 1e-7 < seconds < 1 for seconds in (*first, *second))
    assert processes == workers + 1
    assert multiprocessing.active_children() == []
    assert list(temporary.iterdir()) == []


def test_nothing_starts_before_it_is_needed() -> None:
    with measuring(host(), CodegenOptions()) as measure:
        assert measure([]) == []
        assert multiprocessing.active_children() == []


def test_a_crash_a_hang_and_an_error_while_building_are_that_plans_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "builder", FaultyBuilder)
    with measuring(host(), CodegenOptions(threads=1), Effort(2, 0.002, building=5)) as measure:
        found = measure([product(1), product(6), product(2), product(3), product(16)])
    assert [seconds is not None for seconds in found] == [False, True, False, False, True]
    assert multiprocessing.active_children() == []


def test_a_crash_and_a_hang_while_running_are_that_plans_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "timer", FaultyTimer)
    with measuring(host(), CodegenOptions(threads=1), Effort(2, 0.002, running=3)) as measure:
        found = measure([product(1), product(6), product(2), product(16)])
    assert [seconds is not None for seconds in found] == [False, True, False, True]


def test_no_two_are_timed_side_by_side(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "timer", Watched)
    with measuring(host(), CodegenOptions(threads=1), Effort(2, 0.002)) as measure:
        assert measure([product(6), product(16), product(24)]) == [6.0, 16.0, 24.0]
        (turns,) = temporary.rglob("turns")
        assert turns.read_text().split() == ["begin", "end"] * 3


def test_without_a_compiler_measuring_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "builder", Homeless)
    with pytest.raises(UnavailableError, match="TVM"), measuring(host(), CodegenOptions(), QUICK) as measure:
        measure([product(6)])
    assert multiprocessing.active_children() == []


def test_an_interrupt_leaves_nothing(temporary: Path) -> None:
    def interrupted() -> None:
        with measuring(host(), CodegenOptions(), QUICK) as measure:
            measure([product(6)])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert multiprocessing.active_children() == []
    assert list(temporary.iterdir()) == []
