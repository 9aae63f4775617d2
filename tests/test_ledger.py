"""The ledger holds every id of the catalogue, and pytest fails when a done feature lacks a passing test."""

from pathlib import Path

import pytest
from ledger import Feature, load, problems, table, unclaimed

from tilec.errors import ConfigError

pytest_plugins = ["pytester"]

ROWS = {"W01": Feature("one", "done"), "W02": Feature("two", "later"), "W03": Feature("three", "refused", "no")}


def test_every_id_of_the_catalogue_is_there_once() -> None:
    expected = [
        f"{s}{i:02d}" for s, n in (("W", 60), ("A", 22), ("B", 31), ("L", 38), ("O", 36)) for i in range(1, n + 1)
    ]
    assert list(load()) == expected
    assert all(row.title for row in load().values())


def test_done_needs_a_passing_test() -> None:
    assert problems(ROWS, ["W01"]) == []
    assert problems(ROWS, ["W02"]) == ["W01 (one) is marked done but no test of it passed"]
    assert problems(ROWS, ["W01", "X99"]) == ["X99 is not in the catalogue"]
    assert unclaimed(ROWS, ["W02", "W01", "W03"]) == ["W02"]


@pytest.mark.parametrize(
    "row", ["{title: t, status: soon}", "{title: t, status: refused}", "{title: t, status: done, why: no}"]
)
def test_rows_that_break_the_rules(tmp_path: Path, row: str) -> None:
    (tmp_path / "features.yaml").write_text(f"W01: {row}\n")
    with pytest.raises(ConfigError, match="W01: "):
        load(tmp_path / "features.yaml")


def test_table() -> None:
    text = table(ROWS, {"W01": 3})
    assert "W01  done       3 tests  one" in text
    assert "W03  refused    0 tests  three: no" in text
    assert text.endswith("3 features: 1 done, 1 later, 1 refused")


OF_CONFTEST = tuple(
    f"{name}.py"
    for name in ("conftest", "blas_threads", "budget", "hosts", "ledger", "left_out", "slow_cases", "together")
)
"""The files that every test stands on."""

TESTS = """
import pytest

@pytest.mark.feature("W01")
def test_one():
    assert {one}

@pytest.mark.feature("W02", "W03")
def test_two():
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    here = Path(__file__).parent
    for name in OF_CONFTEST:
        pytester.path.joinpath(name).write_text((here / name).read_text())
    pytester.path.joinpath("features.yaml").write_text(
        "W01: {title: one, status: done}\nW02: {title: two, status: later}\nW03: {title: three, status: later}\n"
    )
    pytester.makeini("[pytest]\nmarkers = feature(*ids)\npythonpath = .\n")
    monkeypatch.setenv("PYTHONPATH", str(here.parent))
    return pytester


def test_a_passing_run(project: pytest.Pytester) -> None:
    project.makepyfile(TESTS.format(one="True"))
    result = project.runpytest_subprocess("--ledger", "-n", "1")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["ledger: tested but not marked done: W02 W03", "ledger: 1 of 3 features done"])


def test_a_run_without_proof_fails(project: pytest.Pytester) -> None:
    project.makepyfile(TESTS.format(one="True").replace('"W01"', '"W02"'))
    assert project.runpytest_subprocess().ret == 0
    result = project.runpytest_subprocess("--ledger")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*LEDGER W01 (one) is marked done but no test of it passed"])


def test_a_failing_test_proves_nothing(project: pytest.Pytester) -> None:
    project.makepyfile(TESTS.format(one="False"))
    result = project.runpytest_subprocess("--ledger")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*LEDGER W01 (one) is marked done but no test of it passed"])


def test_an_unknown_id_is_refused(project: pytest.Pytester) -> None:
    project.makepyfile(TESTS.format(one="True").replace("W03", "W99"))
    result = project.runpytest_subprocess()
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*feature 'W99' is not in tests/features.yaml"])


def test_the_table_runs_nothing(project: pytest.Pytester) -> None:
    project.makepyfile(TESTS.format(one="False"))
    result = project.runpytest_subprocess("--features", "-q")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["W01  done       1 tests  one", "3 features: 1 done, 2 later, 0 refused"])
