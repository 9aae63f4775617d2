"""Ratios and their intervals: what they say of steady, noisy and equal runners."""

import numpy as np
import pytest

from tilec.bench.statistics import BAR, Ratio, ratio


def test_a_steady_advantage_holds():
    found = ratio([1.2] * 15, [1.0] * 15)
    assert (found.median, found.low, found.high) == (pytest.approx(1.2),) * 3
    assert found.verdict(1.2) == "holds"
    assert found.verdict(1.3) == "fails"


def test_noise_common_to_a_round_cancels():
    load = np.random.default_rng(0).uniform(1, 3, 15)
    found = ratio(1.1 * load, load)
    assert found.high - found.low < 1e-9


def test_noise_of_one_runner_widens_the_interval_until_it_is_undecided():
    generator = np.random.default_rng(1)
    ours, theirs = generator.uniform(0.7, 1.3, 15), generator.uniform(0.7, 1.3, 15)
    found = ratio(theirs, ours)
    assert found.low < found.median < found.high
    assert found.verdict(1.0) == "undecided"


def test_the_rule_has_a_slack_of_two_hundredths():
    assert Ratio(0.97, 0.951, 1.0).verdict() == "holds"
    assert Ratio(0.97, 0.949, 1.0).verdict() == "undecided"
    assert Ratio(0.9, 0.88, 0.94).verdict() == "fails"
    assert BAR == 0.97


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(2)
    inside = 0
    for trial in range(200):
        found = ratio(generator.lognormal(0.1, 0.05, 15), np.ones(15), seed=trial)
        inside += found.low <= np.exp(0.1) <= found.high
    assert inside >= 175
