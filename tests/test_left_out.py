"""A complete run leaves out no test for want of a tool."""

from pathlib import Path

import pytest
from left_out import KNOWN, unexpected

from tests.test_ledger import OF_CONFTEST

pytest_plugins = ["pytester"]


def test_known_reasons() -> None:
    assert unexpected(["no browser", *KNOWN, "no browser"]) == ["no browser"]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    here = Path(__file__).parent
    for name in (*OF_CONFTEST, "features.yaml"):
        pytester.path.joinpath(name).write_text((here / name).read_text())
    pytester.makeini("[pytest]\nmarkers = feature(*ids)\npythonpath = .\n")
    monkeypatch.setenv("PYTHONPATH", str(here.parent))
    return pytester


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import pytest\n\ndef test_it():\n    pytest.skip('no tool')\n", 1),
        ("import pytest\n\npytest.importorskip('nowhere')\n", 1),
        ("import pytest\n\ndef test_it():\n    pytest.skip('mounts file systems')\n", 0),
    ],
)
def test_a_test_that_is_left_out_fails_the_run(project: pytest.Pytester, text: str, code: int) -> None:
    project.makepyfile(test_one=text, test_other="def test_other(): pass\n")
    assert project.runpytest_subprocess("--complete", "-n", "1").ret == code
