"""Flips of half precision, and what counts as explained by rounding."""

import numpy as np

from tilec.verify.sensitivity import EVALUATIONS, deviations, disturbed, flipped


def test_a_unit_in_the_last_place_of_few_elements_is_a_flip_beside_nan_and_infinities():
    expected = np.linspace(-1, 1, 200).astype(np.float16)
    expected[:9], expected[9] = np.nan, np.inf
    actual = expected.copy()
    actual[20] = np.nextafter(actual[20], np.float16(1))
    assert flipped(actual, expected)
    actual[30:33] = np.nextafter(actual[30:33], np.float16(1))
    assert not flipped(actual, expected)
    assert not flipped(np.where(np.arange(200) == 50, np.float16(np.nan), expected), expected)


def test_exact_elements_stay_but_of_f64_none_is_known_to_be_exact():
    exact, rounded = np.float32([1.5, 2.0]), np.float32([0.1, 0.3])
    for values, stays in ((exact, True), (rounded, False), (exact.astype(np.float64), False)):
        precise = np.float64([1.5, 2.0]) if values is not rounded else np.float64([0.1, 0.3])
        moved = disturbed(values, precise, 1e-3, 0.0, np.random.default_rng(0))
        assert (moved == values).all() == stays


def test_evaluations_end_when_the_distances_are_enough():
    seen = []
    values = {"y": np.zeros(3)}

    def run(limit):
        def evaluate(drawn):
            return {"y": drawn.random(3)}

        return deviations(
            evaluate, values, ["y"], lambda moved: moved["y"].greatest.min() > limit, lambda *step: seen.append(step)
        )

    few = run(0.1)
    assert few["y"].greatest.min() > 0.1
    assert len(seen) < EVALUATIONS
    assert seen[-1] == (len(seen), EVALUATIONS)
    seen.clear()
    assert (run(2.0)["y"].greatest >= few["y"].greatest).all()
    assert len(seen) == EVALUATIONS
