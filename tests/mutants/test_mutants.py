"""The list of mutants stays applicable to the code; the runner tells what its tests find."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.__main__ import ROOT, main
from tests.mutants.mutant import Mutant, StaleError, load
from tests.mutants.runner import LIMIT, try_mutant


def test_every_mutant_applies_and_names_tests_that_exist() -> None:
    """Where code moved, point `file` and `old` of the mutant at its new place: `make mutants` needs the fault there."""
    problems = []
    for mutant in load():
        try:
            mutant.text(ROOT)
        except StaleError as error:
            problems.append(f"{mutant.name}: {error}")
        files = [ROOT / test.partition("::")[0] for test in mutant.tests]
        problems += [f"{mutant.name}: {file} does not exist" for file in files if not file.is_file()]
    assert problems == []


def test_the_list_covers_the_package() -> None:
    mutants = load()
    assert len(mutants) >= 40
    assert {Path(mutant.file).parts[1] for mutant in mutants} >= {
        *("analysis", "api", "artifact", "bounds", "codegen", "importer", "ir", "lower", "machine"),
        *("runtime", "scheduler", "spec", "verify"),
    }
    assert all(mutant.fault.endswith(".") and mutant.tests for mutant in mutants)


SOURCE = "def double(n):\n    return 2 * n\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A package of one function and its tests."""
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '--import-mode=importlib'\n")
    (tmp_path / "conftest.py").write_text("import hypothesis\nhypothesis.settings.register_profile('unshrunk')\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "double.py").write_text(SOURCE)
    (tmp_path / "test_strong.py").write_text("from package.double import double\ndef test():\n assert double(3) == 6\n")
    (tmp_path / "test_weak.py").write_text("from package.double import double\ndef test():\n assert double(2) == 4\n")
    return tmp_path


def mutant(old: str, new: str, test: str = "test_strong.py") -> Mutant:
    return Mutant("m", "package/double.py", old, new, "It does not double.", (test,))


@pytest.mark.slow
def test_every_mutant_is_tried_and_the_checkout_stays_as_it_is(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    strong = mutant("2 * n", "n + 2")
    weak = replace(strong, name="weak", tests=("test_weak.py",))
    monkeypatch.setattr("tests.mutants.__main__.ROOT", checkout)
    monkeypatch.setattr("tests.mutants.__main__.load", lambda: (strong, weak))
    assert main(["--jobs", "1"]) == 1
    *_, first, second, last = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"killed +[0-9.]+ s  m +test_strong.py::test", first)
    assert re.fullmatch(r"SURVIVED +[0-9.]+ s  weak +", second)
    assert last.startswith("1 of 2 mutants killed")
    assert (checkout / strong.file).read_text() == SOURCE


def test_tests_that_take_too_long_without_a_fault_say_so(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    strong = mutant("2 * n", "n + 2")
    both = replace(strong, tests=("test_strong.py::test", "test_strong.py", "test_weak.py"))
    monkeypatch.setattr("tests.mutants.__main__.ROOT", checkout)
    monkeypatch.setattr("tests.mutants.__main__.load", lambda: (both,))
    limits: list[float] = []

    def never(*arguments: object, limit: float) -> tuple[None, str]:
        limits.append(limit)
        return None, ""

    monkeypatch.setattr("tests.mutants.__main__.run_tests", never)
    assert main(["--jobs", "1"]) == 1
    assert limits == [2 * LIMIT], "the time of two files"
    assert f"take longer than {2 * LIMIT} s without any fault" in capsys.readouterr().err


def test_a_mutant_that_no_test_can_look_at_is_not_killed(checkout: Path) -> None:
    broken = mutant("def double", "def triple")
    assert try_mutant(broken, checkout).status == "BROKEN"
    assert (checkout / broken.file).read_text() == SOURCE


def test_a_mutant_that_ends_the_process_is_killed(checkout: Path) -> None:
    outcome = try_mutant(mutant("2 * n", "__import__('os').abort()"), checkout)
    assert (outcome.status, outcome.detail) == ("killed", "SIGABRT")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("3 * n", "n + 2", "occurs 0 times"),
        ("n", "m", "occurs 3 times"),
        ("2 * n", "2 * n)", "is no Python"),
        ("2 * n", "2 * n", "changes nothing"),
    ],
)
def test_a_mutant_that_does_not_apply_is_stale(checkout: Path, old: str, new: str, why: str) -> None:
    outcome = try_mutant(mutant(old, new), checkout)
    assert (outcome.status, why in outcome.detail) == ("STALE", True)


def test_names_are_listed_and_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(load())
    assert main(["no-such-mutant"]) == 2
    assert "no-such-mutant" in capsys.readouterr().err
