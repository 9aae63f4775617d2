"""Precedence for the timed part: raised, put back, and harmless where it is not allowed."""

import pytest

from tilec.bench.priority import precedence


def test_the_priority_is_raised_and_put_back(tmp_path):
    file = tmp_path / "autogroup"
    file.write_text("/autogroup-17 nice 5\n")
    with precedence(file) as raised:
        assert raised
        assert file.read_text() == "-10"
    assert file.read_text() == "5"


def test_it_is_put_back_after_an_error(tmp_path):
    file = tmp_path / "autogroup"
    file.write_text("/autogroup-17 nice 0\n")
    with pytest.raises(KeyError), precedence(file):
        raise KeyError
    assert file.read_text() == "0"


def test_without_the_file_nothing_happens(tmp_path):
    with precedence(tmp_path / "none") as raised:
        assert not raised
