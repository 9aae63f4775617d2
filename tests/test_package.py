"""The package's face: `tilec.load`, imported when it is asked for."""

import pytest

import tilec
from tilec import runtime


def test_load_and_session_are_the_runtimes():
    assert tilec.load is runtime.load
    assert tilec.Session is runtime.Session


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="laod"):
        tilec.laod  # noqa: B018
