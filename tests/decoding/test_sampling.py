"""Tokens from logits."""

import numpy as np
import pytest

from tilec.decoding.sampling import Sampling, chosen
from tilec.errors import UsageError

LOGITS = np.array([0.0, 3.0, 1.0, 3.0, 2.0], "f4")


def _drawn(sampling, count=400):
    generator = np.random.default_rng(0)
    return [chosen(LOGITS, sampling, generator) for _ in range(count)]


def test_the_first_of_the_likeliest_without_a_temperature():
    assert set(_drawn(Sampling(), 3)) == {1}
    assert set(_drawn(Sampling(temperature=2.0, top_k=1), 3)) == {1}


def test_shares_are_those_of_the_softmax():
    counts = np.bincount(_drawn(Sampling(temperature=1.0), 20000), minlength=5) / 20000
    expected = np.exp(LOGITS.astype("f8"))
    np.testing.assert_allclose(counts, expected / expected.sum(), atol=0.01)
    hot = np.bincount(_drawn(Sampling(temperature=100.0), 20000), minlength=5) / 20000
    np.testing.assert_allclose(hot, 0.2, atol=0.02)


def test_only_the_likeliest_are_drawn():
    assert set(_drawn(Sampling(temperature=1.0, top_k=2))) == {1, 3}
    assert set(_drawn(Sampling(temperature=1.0, top_p=0.5))) == {1, 3}
    assert set(_drawn(Sampling(temperature=1.0, top_p=0.3))) == {1}
    assert set(_drawn(Sampling(temperature=1.0, top_k=3, top_p=1.0))) == {1, 3, 4}


@pytest.mark.parametrize(
    "options", [{"temperature": -1.0}, {"temperature": float("nan")}, {"top_p": 0.0}, {"top_k": -1}]
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(UsageError, match="A temperature is 0 or more"):
        Sampling(**options)
