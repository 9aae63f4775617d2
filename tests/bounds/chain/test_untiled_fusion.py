from __future__ import annotations

import random
from itertools import pairwise, permutations, product

import pytest

from bounds import fusing, walk
from tilec.bounds.chain.chain import Product, ProductChain
from tilec.bounds.chain.segments import unfused_curve
from tilec.bounds.chain.untiled_fusion import untiled_curve


def random_chain(seed: int) -> ProductChain:
    """Two or three small products without heads and batches."""
    rng = random.Random(seed)
    m, *sizes = (rng.choice([1, 2, 3, 4, 6]) for _ in range(4 + seed % 2))
    return ProductChain(tuple(
        Product(f"op{i}", m, k, n, input_bits=16 - 8 * (i % 2), weight_bits=4, output_bits=8 + 8 * (i % 2))
        for i, (k, n) in enumerate(pairwise(sizes))
    ))  # fmt: skip


def points(operator: Product, read: bool, written: bool) -> list[tuple[int, int]]:
    """(bytes of buffer, bytes moved) of all mappings of an operator whose input or output stays whole."""
    found = []
    bits = {"I": operator.input_bits, "W": operator.weight_bits, "O": operator.output_bits}
    held = read * operator.input_words * bits["I"] + written * operator.output_words * bits["O"]
    for m, k, n in product(walk.perfect(operator.m), walk.perfect(operator.k), walk.perfect(operator.n)):
        for loops in permutations("mkn"):
            inputs, weights, outputs = fusing.run(operator, "".join(loops), (m, k, n), True)
            room = held + k * n * bits["W"] + (1 - read) * m * k * bits["I"] + (1 - written) * m * n * bits["O"]
            moved = weights * bits["W"] + (1 - read) * inputs * bits["I"] + (1 - written) * outputs * bits["O"]
            found.append((-(-room // 8), -(-moved // 8)))
    return found


@pytest.mark.feature("O16")
@pytest.mark.parametrize("seed", range(6))
def test_the_best_of_all_sets_of_tensors_that_stay(seed: int) -> None:
    chain = random_chain(seed)
    count = len(chain.operators)
    curve = untiled_curve(chain)
    ways = [
        [points(operator, read, written) for operator, read, written in
         zip(chain.operators, (False, *stays), (*stays, False), strict=True)]
        for stays in product((False, True), repeat=count - 1)
    ]  # fmt: skip
    for buffer in range(1, curve.largest_useful_buffer + 20):
        sums = []
        for way in ways:
            fitting = [[moved for room, moved in operator if room <= buffer] for operator in way]
            if all(fitting):
                sums.append(sum(min(each) for each in fitting))
        found = curve.at(buffer)
        assert (found.traffic_bytes if found else None) == min(sums, default=None), buffer


@pytest.mark.feature("O16", "O24")
def test_a_large_tensor_that_stays_pays_late() -> None:
    chain = ProductChain((Product("fc1", 32768, 4096, 16384), Product("fc2", 32768, 16384, 4096)))
    curve, alone = untiled_curve(chain), unfused_curve(chain)
    between = 32768 * 16384 * 2
    for buffer in (2**20, 2**28, between):
        one, other = curve.at(buffer), alone.at(buffer)
        assert one is not None
        assert other is not None
        assert one.accesses == other.accesses
    last = curve.points[-1]
    # fc1 beside its output: an element of its input and a row of its weights.
    assert (last.buffer_bytes, last.traffic_bytes) == (between + 2 + 2 * 16384, 768 * 2**20)
    assert [segment.steps[0].template for segment in last.segments] == ["O whole", "I whole"]
