from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from work import calls

from bounds import fusing
from tilec.bounds.chain.chain import Product, ProductChain
from tilec.bounds.chain.segments import (
    ChainCurve,
    chain_curve,
    parallel_pairs,
    parallel_segments,
    segmented_curve,
    unfused_curve,
)
from tilec.bounds.einsum.oro import oro
from tilec.bounds.einsum.oro_plus import oro_plus

BLOCK = ProductChain((
    Product("proj_0", 32768, 4096, 4096),
    Product("qk", 32768, 128, 2048, heads=32, batches=16, rows="softmax"),
    Product("qkv", 32768, 2048, 128, heads=32, batches=16),
    Product("proj_final", 32768, 4096, 4096, rows="whole"),
    Product("fc1", 32768, 4096, 16384),
    Product("fc2", 32768, 16384, 4096),
))  # fmt: skip


def compositions(count: int) -> Iterator[tuple[int, ...]]:
    """Every way to write `count` as a sum, in order."""
    if not count:
        yield ()
    for first in range(1, count + 1):
        yield from ((first, *rest) for rest in compositions(count - first))


def cut(chain: ProductChain, lengths: tuple[int, ...]) -> list[ChainCurve]:
    """The curve of every segment."""
    ends = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    return [chain_curve(ProductChain(chain.operators[start:end])) for start, end in pairwise(ends)]


@pytest.mark.feature("O25")
@pytest.mark.parametrize("seed", range(8))
def test_the_best_of_all_cuts_at_every_buffer(seed: int) -> None:
    chain = fusing.random_chain(seed, 2 + seed % 3)
    curve = segmented_curve(chain)
    ways = [cut(chain, lengths) for lengths in compositions(len(chain.operators))]
    for buffer in range(1, curve.largest_useful_buffer + 20):
        sums = [sum(point.traffic_bytes for point in points if point)
                for points in ([part.at(buffer) for part in way] for way in ways) if all(points)]  # fmt: skip
        found = curve.at(buffer)
        assert (found.traffic_bytes if found else None) == min(sums, default=None)


@pytest.mark.feature("O25")
def test_points_say_which_operators_run_together_and_how() -> None:
    curve = segmented_curve(BLOCK)
    point = curve.at(50_000_000)
    assert point is not None
    assert [segment.operators for segment in point.segments] == [
        ("proj_0",), ("qk", "qkv"), ("proj_final",), ("fc1", "fc2")
    ]  # fmt: skip
    assert str(point.segments[1]) == (
        "qk (TiledK, tile m:1 k:128 n:2048, W kept) > qkv (TiledN, tile m:1 k:2048 n:128, W kept)"
    )
    assert str(point.segments[3]) == "fc1 (TiledKN, tile m:4096 k:4096 n:1) > fc2 (TiledNK, tile m:4096 k:1 n:4096)"
    for each in curve.points:
        assert each.accesses == sum(segment.accesses for segment in each.segments)
        assert each.traffic_bytes == 2 * each.accesses
    assert "all cuts" in curve.mapspace
    assert "perfect factors" in curve.mapspace
    assert curve.mappings > 10_000


def test_each_cut_sends_its_tensor_through_the_backing_store() -> None:
    fused, alone = chain_curve(BLOCK), unfused_curve(BLOCK)
    between = sum(each.output_words for each in BLOCK.operators[:-1])
    assert alone.points[-1].accesses - fused.points[-1].accesses == 2 * between


@pytest.mark.feature("O25", "O31")
def test_six_operators_with_all_cuts_take_moments() -> None:
    segmented_curve(BLOCK)
    assert calls(lambda: segmented_curve(BLOCK)) < 100_000


def test_one_operator_is_a_chain() -> None:
    product = Product("a", 12, 6, 8)
    expected = [(point.buffer_bytes, point.traffic_bytes) for point in oro(product.einsum()).points]
    for curve in (chain_curve, segmented_curve, unfused_curve):
        assert [(p.buffer_bytes, p.traffic_bytes) for p in curve(ProductChain((product,))).points] == expected
    plus = unfused_curve(ProductChain((product,)), ragged=True)
    assert [p.traffic_bytes for p in plus.points] == [p.traffic_bytes for p in oro_plus(product.einsum()).points]


def test_nothing_fits_a_byte() -> None:
    curve = segmented_curve(BLOCK)
    assert curve.at(1) is None
    assert curve.at(10**12) == curve.points[-1]


@pytest.mark.feature("O10")
def test_units_share_rows_and_each_keeps_weights_of_its_own() -> None:
    """Two products whose weights fit: one unit reads them once, four units once each; heads are rows of batches."""
    chain = ProductChain((Product("a", 16, 4, 8, heads=2), Product("b", 16, 8, 4, heads=2)))
    rows, weights = 2 * 16 * 2 * 4, 2 * 2 * (4 * 8 + 8 * 4)
    assert [parallel_pairs(chain, units)[-1][1] for units in (1, 2, 4, 8)] == [
        2 * rows + weights * max(1, units // 2) for units in (1, 2, 4, 8)
    ]
    assert parallel_pairs(chain, 33) == []
    assert parallel_pairs(chain, 32)
    whole = 10**6
    least = [parallel_segments(chain, units, whole) for units in (2, 4, 32)]
    assert least[0] == 2 * rows + weights
    assert least == sorted(least, key=float)  # type: ignore[arg-type]
    assert parallel_segments(chain, 4, 3) is None
