"""The figures of the Orojenesis paper from the recipes that come with tilec, each with its convention."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import pytest

from bounds import walk
from tilec.bounds.chain.segments import ChainCurve
from tilec.bounds.einsum.einsum import parse_einsum
from tilec.bounds.einsum.oro import oro
from tilec.bounds.workload import Bounds, bounds_of, chain_of_part, einsum_of_part, study
from tilec.errors import ConfigError
from tilec.spec.bounds import BoundsRecipe
from tilec.spec.located import parse_yaml, validate
from tilec.spec.resolve import packaged, recipe_source

MIB = 2**20
MB = 10**6


def recipe(name: str, **changes: Any) -> BoundsRecipe:
    """A packaged recipe with other values of some keys."""
    source = recipe_source(f"bounds/{name}")
    return validate(BoundsRecipe, parse_yaml(source.text, source.place)).model_copy(update=changes)


def bounds(name: str, **changes: Any) -> Bounds:
    return bounds_of(recipe(name, **changes))


def words(curve: ChainCurve, capacity: int) -> int:
    point = curve.at(capacity)
    assert point is not None
    return point.accesses


def mib(curve: ChainCurve, capacity: int) -> float:
    point = curve.at(capacity)
    assert point is not None
    return point.traffic_bytes / MIB


RECIPES = sorted(name for name in packaged("recipes") if name.startswith("bounds/"))


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_says_what_it_counts_and_reproduces(name: str) -> None:
    text = packaged("recipes")[name].read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../recipe.schema.json\n# ")
    assert len(recipe(name.removeprefix("bounds/")).convention) > 10


@pytest.mark.feature("O01", "O06", "O33")
def test_square_product_of_single_precision() -> None:
    curve = bounds("gemm-4k").curve
    assert [mib(curve, c) for c in recipe("gemm-4k").capacities] == [1600, 1088, 320, 256, 256, 256]
    assert (curve.largest_useful_buffer, curve.points[-1].traffic_bytes) == (67_141_632, 192 * MIB)


@pytest.mark.feature("O29")
def test_gpus_move_more_than_the_curve() -> None:
    given, curve = recipe("gemm-4k"), bounds("gemm-4k").curve
    ratios = {each.name: each.traffic / MIB / mib(curve, each.capacity) for each in given.measured}
    assert len(ratios) == 8
    assert min(ratios.values()) > 1.45
    assert ratios["A100 tensor"] == pytest.approx(1.61, abs=0.005)


@pytest.mark.feature("O01")
def test_tall_product_in_bytes() -> None:
    curve = bounds("gemm-16k-1k-1k").curve
    assert (curve.largest_useful_buffer, curve.points[-1].traffic_bytes) == (1_050_624, 33 * MIB)


@pytest.mark.feature("O14")
@pytest.mark.parametrize("groups", [1, 2, 4, 8, 16, 32])
def test_grouped_queries(groups: int) -> None:
    (part,) = recipe("gqa").workload
    regrouped = part.model_copy(update={"dims": {**part.dims, "g": groups, "j": 32 // groups}})
    curve = bounds("gqa", workload=(regrouped,)).curve
    assert curve.largest_useful_buffer == 528_512
    # In the end the queries and scores of 32 heads move once, and the keys of every group.
    assert curve.points[-1].accesses == 32 * 4096 * (128 + 4096) + groups * 4096 * 128


@pytest.mark.feature("O24")
def test_feed_forward_pair() -> None:
    found = bounds("ffn")
    fused, alone = found.curve, found.unfused
    assert (alone.points[-1].traffic_bytes, fused.points[-1].traffic_bytes) == (2816 * MIB, 768 * MIB)
    assert alone.points[-1].accesses / fused.points[-1].accesses == pytest.approx(3.667, abs=0.0005)
    assert fused.largest_useful_buffer == 256 * MIB + 40 * 1024
    buffers = sorted(point.buffer_bytes for curve in (fused, alone) for point in curve.points)
    better = {buffer: words(fused, buffer) <= words(alone, buffer) for buffer in buffers if fused.at(buffer) and
              alone.at(buffer)}  # fmt: skip
    assert max(buffer for buffer, holds in better.items() if not holds) < 8_390_658
    assert better[8_390_658]
    assert words(fused, 8_390_657) > words(alone, 8_390_657)


@pytest.mark.feature("O24")
def test_ragged_tiles_move_less_on_the_pair() -> None:
    perfect, ragged = bounds("ffn").curve, bounds("ffn", mapspace="oro+").curve
    ratios = {p.buffer_bytes: words(perfect, p.buffer_bytes) / p.accesses for p in ragged.points}
    assert max(ratios, key=ratios.__getitem__) == 15_798_034
    assert max(ratios.values()) == pytest.approx(1.79, abs=0.005)
    assert min(ratios.values()) >= 1


def test_weights_may_have_fewer_bits() -> None:
    (part,) = recipe("ffn").workload
    assert part.chain is not None
    four = part.model_copy(update={"chain": tuple(each.model_copy(update={"weight_bits": 4}) for each in part.chain)})
    curve = bounds("ffn", workload=(four,)).curve
    assert curve.points[-1].traffic_bytes == 2 * 32768 * 4096 * 2 + 2 * 4096 * 16384 // 2
    assert curve.largest_useful_buffer == 2 * 4096 * 16384 // 2 + 40 * 1024


@pytest.mark.feature("O16")
def test_pair_with_the_whole_tensor_between_in_the_buffer() -> None:
    curve = bounds("ffn-untiled").curve
    assert mib(curve, 1024 * MIB) == 2816
    assert (curve.largest_useful_buffer, curve.points[-1].traffic_bytes) == (1_073_774_594, 768 * MIB)


@pytest.mark.feature("O26")
def test_flash_attention_against_flat() -> None:
    flat, flash = bounds("attention-flat").curve, bounds("attention-flash").curve
    assert words(flat, 16 * MB) == 8_858_370_048
    assert words(flash, 16 * MB) == 939_524_096
    assert words(flat, 16 * MB) / words(flash, 16 * MB) == pytest.approx(9.4, abs=0.05)
    assert flat.largest_useful_buffer == flash.largest_useful_buffer == 33_693_696
    assert words(flat, 33_693_696) == words(flash, 33_693_696) == 536_870_912
    assert words(flat, 33_693_695) > words(flash, 33_693_695)


@pytest.mark.feature("O26")
def test_flash_attention_with_both_kept_tiles_counted() -> None:
    flat, flash = bounds("attention-flat", scheme=1).curve, bounds("attention-flash", scheme=1).curve
    assert words(flat, 16 * MB) / words(flash, 16 * MB) == pytest.approx(5.1, abs=0.05)
    assert flash.largest_useful_buffer == 33_693_696


@pytest.mark.feature("O26")
@pytest.mark.parametrize("scheme", [1, 2])
def test_attention_with_rows_outside_moves_less_than_both(scheme: int) -> None:
    (part,) = recipe("attention-flash").workload
    assert part.chain is not None
    free = part.model_copy(update={"chain": tuple(each.model_copy(update={"rows": "free"}) for each in part.chain)})
    curve = bounds("attention-flash", workload=(free,), fusion="ffmt", scheme=scheme).curve
    assert words(curve, 16 * MB) == 805_306_368


@pytest.mark.feature("O26")
def test_keys_and_values_count_once_per_batch() -> None:
    """With one batch they are 16 times fewer, which is how the paper's program counts in these templates."""
    (part,) = recipe("attention-flash").workload
    assert part.chain is not None
    once = part.model_copy(update={"chain": tuple(each.model_copy(update={"batches": 1}) for each in part.chain)})
    found, shared = bounds("attention-flash").curve, bounds("attention-flash", workload=(once,)).curve
    saved = 2 * 15 * 32 * 128 * 2048
    assert words(found, 34 * MB) - words(shared, 34 * MB) == saved


@pytest.mark.feature("O27")
def test_block_of_gpt3() -> None:
    found = bounds("gpt3")
    fused, alone = found.curve.points[-1], found.unfused.points[-1]
    assert (fused.accesses, alone.accesses) == (1_275_068_416, 7_449_083_904)
    assert alone.accesses / fused.accesses == pytest.approx(5.84, abs=0.005)
    assert alone.accesses - fused.accesses == pytest.approx(6.17e9, abs=5e6)
    assert fused.buffer_bytes == 369_238_016
    assert words(found.unfused, 50 * MB) / words(found.curve, 50 * MB) == pytest.approx(2.76, abs=0.005)
    # Keys and values once for all batches in the unfused products only.
    kv = 2 * 15 * 32 * 128 * 2048
    assert (alone.accesses - kv) / fused.accesses == pytest.approx(5.64, abs=0.005)
    assert alone.accesses - kv - fused.accesses == pytest.approx(5.92e9, abs=5e6)


@pytest.mark.feature("O19", "O27")
def test_block_of_gpt3_as_the_paper_counts() -> None:
    found = bounds("gpt3-paper")
    fused, alone = words(found.curve, 50 * MB), words(found.unfused, 50 * MB)
    assert alone / fused == pytest.approx(2.53, abs=0.005)
    assert (alone - fused) / 2**30 == pytest.approx(4.7, abs=0.05)
    last = found.curve.points[-1]
    assert (last.buffer_bytes, last.accesses) == (318_808_064, 1_275_068_416)
    # Rows of 2048 hold a batch: keys and values pass once although they are not kept.
    assert [(step.kept, step.tiles["m"]) for step in last.segments[0].steps] == [
        (True, 2048), (False, 2048), (False, 2048), (True, 2048), (True, 2048), (True, 2048)
    ]  # fmt: skip
    assert last.buffer_bytes + 2048 * 4096 * 2 == 335_585_280


@pytest.mark.feature("O28")
def test_die_shared_by_multipliers_and_buffer() -> None:
    given = recipe("gpt3")
    assert given.area is not None
    found = study(bounds_of(given), given.area)
    assert found.speedup == pytest.approx(3.83, abs=0.005)
    assert found.buffer_saved == pytest.approx(0.25, abs=0.005)


@pytest.mark.feature("O28")
def test_die_by_the_published_formulas() -> None:
    given = recipe("gpt3-paper")
    assert given.area is not None
    assert 2 * bounds_of(given).macs == 14_293_651_161_088  # 0.7 % below the published number of operations
    found = study(bounds_of(given), given.area)
    assert found.speedup == pytest.approx(2.37, abs=0.005)
    assert found.buffer_saved == pytest.approx(0.49, abs=0.005)
    by_position = bounds("gpt3-paper", fusion="ffmt")
    found = study(by_position, given.area)
    assert found.speedup == pytest.approx(2.57, abs=0.005)
    assert found.buffer_saved == pytest.approx(0.49, abs=0.005)
    every = study(by_position, given.area.model_copy(update={"samples": None}))
    assert every.speedup == pytest.approx(2.58, abs=0.005)
    assert every.buffer_saved == pytest.approx(0.50, abs=0.005)


def test_a_die_that_nothing_fits() -> None:
    given = recipe("gpt3")
    assert given.area is not None
    with pytest.raises(ConfigError, match="fits"):
        study(bounds_of(given), given.area.model_copy(update={"die_mm2": 1e-9}))


def test_parts_run_in_turn_with_the_whole_buffer() -> None:
    text = "C[m,n] = sum(k, A[m,k] * B[k,n])"
    (part,) = recipe("gemm-16k-1k-1k").workload
    parts = [part.model_copy(update={"dims": dims}) for dims in ({"m": 6, "n": 4, "k": 3}, {"m": 2, "n": 8, "k": 8})]
    curve = bounds("gemm-16k-1k-1k", workload=tuple(parts)).curve
    curves = [oro(parse_einsum(text, each.dims, 8)) for each in parts]
    for buffer in range(1, 200):
        fitting = [each.at(buffer) for each in curves]
        found = curve.at(buffer)
        expected = sum(point.traffic_bytes for point in fitting if point) if all(fitting) else None
        assert (found.traffic_bytes if found else None) == expected


def test_fusion_none_and_the_wrong_kind_of_part() -> None:
    found = bounds("ffn", fusion="none")
    assert found.curve == found.unfused
    with pytest.raises(ConfigError, match="not an Einsum"):
        einsum_of_part(recipe("ffn").workload[0])
    with pytest.raises(ConfigError, match="not a chain"):
        chain_of_part(recipe("gqa").workload[0])


@pytest.mark.feature("O10", "O30")
def test_arrays_of_processing_elements_move_more_than_the_curve() -> None:
    """Every element of an array has a share of the product, a buffer, and a random mapping of its own, walked tile by
    tile; the best mapping of one element alone is the curve."""
    rng = random.Random(30)
    text, extents = "C[m,n] = sum(k, A[m,k] * B[k,n])", {"m": 8, "n": 4, "k": 6}
    curve = oro(parse_einsum(text, extents))
    attained = set()
    for _ in range(1500):
        across = {dim: rng.choice(walk.perfect(extent)) for dim, extent in extents.items() if rng.random() < 0.5}
        share = parse_einsum(text, {dim: extent // across.get(dim, 1) for dim, extent in extents.items()})
        tiles = {dim: rng.choice(walk.perfect(extent)) for dim, extent in share.extents.items()}
        loops = [dim for dim in share.dims if tiles[dim] < share.extents[dim]]
        ((buffer, moved),) = walk.traffic(share, tiles, tuple(rng.sample(loops, len(loops))))
        elements = prod(across.values())
        # Partial sums of other elements are read before they are written.
        moved = elements * moved + 8 * 4 * (across.get("k", 1) - 1)
        best = curve.at(elements * buffer)
        assert best is not None
        assert moved >= best.accesses
        if moved == best.accesses:
            attained.add(best.buffer_bytes)
    assert len(attained) > len(curve.points) // 2
