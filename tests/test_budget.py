"""`--budget` fails a run for tests, and for fixtures, that take longer."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

FILE = """
import subprocess, sys, time
import pytest

runs = []

def spend():
    begin = time.process_time()
    while time.process_time() < begin + 0.3: pass

@pytest.fixture(scope="module")
def long(): spend()

def test_long_fixture(long): pass
def test_long(): spend()
def test_long_child(): subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.3: pass"])
def test_long_once():
    runs.append(0)
    len(runs) > 1 or spend()
def test_wrong_the_second_time():
    runs.append(0)
    spend()
    assert len(runs) < 4
def test_short(): pass
"""


def test_what_takes_longer_is_named(pytester: pytest.Pytester) -> None:
    budget = Path(__file__).with_name("budget.py").read_text(encoding="utf-8")
    pytester.makepyfile(budget=budget, test_file=FILE)
    pytester.makeconftest("from budget import Budget\ndef pytest_configure(config):\n"
                          "    config.pluginmanager.register(Budget(config, 0.2))\n")  # fmt: skip
    ran = pytester.runpytest("-p", "no:cacheprovider")
    assert ran.ret == pytest.ExitCode.TESTS_FAILED
    ran.assert_outcomes(passed=5, failed=1)
    over = sorted(line.split(": ")[1] for line in ran.outlines if line.startswith("OVER BUDGET 0."))
    tests = ("test_long", "test_long_child", "test_wrong_the_second_time")
    assert over == ["fixtures of test_file.py::test_long_fixture", *(f"test_file.py::{name}" for name in tests)]
