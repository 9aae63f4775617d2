"""Markers that tell cases of a test apart: which of them are slow, and that all of these are there."""

import pytest
from slow_cases import UNKNOWN, mark_slow

pytest_plugins = ["pytester"]

FILE = """
import pytest

@pytest.mark.slow_cases("2", "gone")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_most(n): pass

@pytest.mark.quick_cases("1")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_one(n): pass

def test_another(): pass
"""


def test_what_markers_name_is_slow(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n  slow\n  slow_cases\n  quick_cases")
    items = pytester.getitems(FILE)
    assert mark_slow(items) == ["test_what_markers_name_is_slow.py::test_most[gone]"]
    slow = [item.name for item in items if item.get_closest_marker("slow")]
    assert slow == ["test_most[2]", "test_one[2]", "test_one[3]"]


def test_cases_that_markers_name_are_there(pytestconfig: pytest.Config) -> None:
    """Of what this run has collected, which for `make test` is everything."""
    assert pytestconfig.stash[UNKNOWN] == []
