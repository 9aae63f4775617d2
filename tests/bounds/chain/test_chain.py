from __future__ import annotations

import pytest

from tilec.bounds.chain.chain import Product, ProductChain
from tilec.errors import ConfigError


@pytest.mark.feature("O15")
def test_the_output_of_each_is_the_input_of_the_next() -> None:
    attention = ProductChain((
        Product("proj", 64, 32, 32),
        Product("qk", 64, 8, 16, heads=4, batches=4, rows="softmax"),
        Product("qkv", 64, 16, 8, heads=4, batches=4),
        Product("final", 64, 32, 32),
    ))  # fmt: skip
    assert attention.macs == 64 * (32 * 32 + 4 * 8 * 16 + 4 * 16 * 8 + 32 * 32)
    assert [each.weight_words for each in attention.operators] == [1024, 512, 512, 1024]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (Product("b", 8, 3, 2), "a makes 8 rows of 4, b reads 8 rows of 3"),
        (Product("b", 4, 4, 2), "a makes 8 rows of 4, b reads 4 rows of 4"),
        (Product("b", 8, 4, 2, heads=2), "a makes 8 rows of 4, b reads 8 rows of 8"),
        (Product("b", 8, 4, 2, input_bits=8), "a makes elements of 16 bits, b reads 8"),
        (Product("a", 8, 4, 2), "two operators are called a"),
    ],
)
def test_operators_that_do_not_follow(other: Product, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ProductChain((Product("a", 8, 2, 4), other))


def test_sizes_below_one() -> None:
    with pytest.raises(ConfigError, match="k is 0"):
        Product("a", 8, 0, 4)
    with pytest.raises(ConfigError, match="8 rows are not 3 equal batches"):
        Product("a", 8, 1, 4, batches=3)
    with pytest.raises(ConfigError, match="without operators"):
        ProductChain(())


def test_a_product_alone_is_an_einsum() -> None:
    plain = Product("a", 8, 2, 4, input_bits=8, weight_bits=4, output_bits=32).einsum()
    assert dict(plain.extents) == {"m": 8, "n": 4, "k": 2}
    assert [operand.bits for operand in plain.operands] == [8, 4, 32]
    batched = Product("a", 8, 2, 4, heads=3, batches=2).einsum()
    assert dict(batched.extents) == {"b": 6, "m": 4, "n": 4, "k": 2}
