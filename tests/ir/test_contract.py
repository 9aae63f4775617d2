"""Contractions of integers are exact, wrap as NumPy's own do, and are multiplied as floats where these hold them."""

import numpy as np
import pytest

from tilec.ir import contract as module
from tilec.ir.contract import contract


@pytest.mark.parametrize(
    ("most", "multiplied"),
    [(1, np.float32), (255, np.float32), (2**11, np.float64), (2**23, np.float64), (2**25, np.int32)],
)
def test_products_of_integers_are_exact(monkeypatch, most, multiplied):
    generator = np.random.default_rng(0)
    left, right = (generator.integers(-most, most + 1, shape, np.int32) for shape in ((5, 37, 1), (1, 37, 3)))
    left.flat[0] = right.flat[0] = most
    product, types = np.matmul, []
    monkeypatch.setattr(module.np, "matmul", lambda a, b: types.append(a.dtype) or product(a, b))
    values = [left.transpose(0, 2, 1), right.transpose(0, 2, 1)]
    result = contract(values, (5, 3, 37), 2)
    monkeypatch.undo()
    wanted = (left.astype(np.int64)[:, :, 0] @ right.astype(np.int64)[0]).astype(np.int32)
    np.testing.assert_array_equal(result, wanted)
    assert (result.dtype, types) == (np.int32, [multiplied])


def test_the_most_negative_integer_is_no_small_one():
    least = np.full((1, 2), -(2**31), np.int32)
    assert contract([least, least], (1, 2), 1).tolist() == [0]  # 2**63, wrapped


def test_sums_of_nothing_are_0():
    assert (
        contract([np.zeros((2, 1, 0), np.int32), np.zeros((1, 3, 0), np.int32)], (2, 3, 0), 2).tolist() == [[0] * 3] * 2
    )
