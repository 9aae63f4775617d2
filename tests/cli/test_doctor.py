"""`tilec doctor`: findings as lines and as JSON, exit codes."""

import json

import pytest

from tilec.report.doctor import Finding
from tilec.report.doctor import packages as checked

CHECKS = ["python", "packages", "loading", "cpu", "threads", "memory", "nvcc", "hipcc", "g++", "gpu", "host", "cache"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """No module is imported in a process of its own."""
    monkeypatch.setattr(checked, "_imported", lambda module: "")


def broken():
    yield Finding("packages", "error", "numpy 1.26 is installed: tilec 0.1.0 needs >=2.0", "pip install 'numpy>=2.0'")


def test_this_machine_can_be_used(cli):
    ran = cli("doctor", "--json")
    told = json.loads(ran.out)
    assert ran.code == 0
    assert told["usable"] is True
    assert list(dict.fromkeys(finding["check"] for finding in told["findings"])) == CHECKS
    for finding in told["findings"]:
        assert sorted(finding) == ["check", "fix", "status", "text"]
        assert finding["status"] in ("ok", "info", "warning")


def test_lines(cli):
    ran = cli("doctor")
    assert ran.out.splitlines()[0].startswith("ok       python    3.")
    assert ran.err.startswith("tilec can be used here")


def test_a_clash_has_its_fix_and_exits_with_6(cli, monkeypatch):
    monkeypatch.setattr(checked, "packages", broken)
    ran = cli("doctor", "--quiet")
    assert ran.code == 6
    assert ran.out == (
        "error    packages  numpy 1.26 is installed: tilec 0.1.0 needs >=2.0\n"
        "                   pip install 'numpy>=2.0'\n"
    )
    assert ran.err == ""
    ran = cli("doctor", "--json")
    assert (ran.code, json.loads(ran.out)["usable"]) == (6, False)
    assert ran.err.startswith("tilec cannot be used here: 1 error")


def test_an_invalid_setting_exits_with_2(cli, monkeypatch):
    monkeypatch.setenv("TILEC_CACHE_LIMIT", "much")
    ran = cli("doctor")
    assert ran.code == 2
    assert "error    cache     TILEC_CACHE_LIMIT: 'much' is not a number with a unit" in ran.out
