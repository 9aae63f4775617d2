"""Sizes that a session sees: when they are frequent, what is kept of them, and when."""

import pytest

from tilec.api import observed_sizes
from tilec.api.cache import Cache
from tilec.api.feeds import Sizes
from tilec.api.header import Described
from tilec.api.observed_sizes import ObservedSizes
from tilec.api.size_counts import FILE, read_counts

SHA = "a" * 64


@pytest.fixture
def observed(tmp_path):
    ports = [Described(name, "tensor(float)", ("seq", 4), ("seq", "4")) for name in ("x", "y")]
    return ObservedSizes(Sizes(ports, {}), Cache(tmp_path), SHA)


def kept(tmp_path):
    return read_counts(Cache(tmp_path).model(SHA) / FILE)


def shapes(seq, other=None):
    return ((seq, 4), (other or seq, 4))


def test_frequent_is_often_and_a_share_of_all(observed):
    assert [observed.add(shapes(7)) for _ in range(32)] == [False] * 31 + [True]
    for n in range(300):
        assert not observed.add(shapes(100 + n))
    assert not observed.add(shapes(7))  # 33 of 333
    assert observed.add(shapes(7))  # 34 of 334


def test_counts_are_kept_when_calls_have_doubled_and_at_the_end(observed, tmp_path):
    for _ in range(31):
        observed.add(shapes(7))
    assert not (Cache(tmp_path).model(SHA) / FILE).exists()
    observed.add(shapes(8))
    assert [(dict(each.sizes), each.calls) for each in kept(tmp_path).counts] == [({"seq": 7}, 31), ({"seq": 8}, 1)]
    for _ in range(10):
        observed.add(shapes(7))
    assert kept(tmp_path).calls == 32
    observed.keep()
    observed.keep()
    assert kept(tmp_path).calls == 42
    assert kept(tmp_path).counts[0].calls == 41


def test_inputs_that_disagree_are_counted_and_not_kept(observed, tmp_path):
    observed.add(shapes(7, 8))
    observed.add(shapes(7))
    observed.keep()
    assert [each.calls for each in kept(tmp_path).counts] == [1]
    assert kept(tmp_path).calls == 2


def test_many_sizes_take_little_memory(observed, monkeypatch):
    monkeypatch.setattr(observed_sizes, "MOST", 8)
    for seq in range(1, 200):
        observed.add(shapes(1))
        observed.add(shapes(seq))
        assert len(observed._seen) <= 8
    assert observed._seen[shapes(1)] == 200


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    port = Described("x", "tensor(float)", ("seq",), ("seq",))
    observed = ObservedSizes(Sizes([port], {}), Cache(tmp_path / "file"), SHA)
    for _ in range(64):
        observed.add(((3,),))
