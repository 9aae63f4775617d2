from __future__ import annotations

import subprocess
import sys

import pytest
from work import calls

from bounds import walk
from tests.examples import seeds
from tilec.bounds.einsum.cost import accesses, footprint
from tilec.bounds.einsum.curve import Curve
from tilec.bounds.einsum.einsum import Einsum, parse_einsum
from tilec.bounds.einsum.loops import Space
from tilec.bounds.einsum.lower import lb
from tilec.bounds.einsum.oro import divisors, oro
from tilec.bounds.einsum.oro_plus import oro_plus, tile_sizes
from tilec.bounds.einsum.search import pareto

GEMM = "C[m,n] = sum(k, A[m,k] * B[k,n])"


def pairs(curve: Curve) -> list[tuple[int, int]]:
    return [(point.buffer_bytes, point.accesses) for point in curve.points]


def test_tile_sizes_are_the_smallest_for_their_number() -> None:
    assert all(tile_sizes(extent) == walk.smallest(extent) for extent in range(1, 400))


@pytest.mark.feature("O03")
@pytest.mark.parametrize("seed", seeds(10, 30))
def test_curves_are_the_front_of_all_mappings_walked_over_element_sets(seed: int) -> None:
    einsum = walk.random_einsum(seed, iterations=150)
    assert pairs(oro_plus(einsum)) == walk.front(einsum, walk.smallest, plus=True), einsum


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1600))
def test_many_curves_are_the_front_of_all_mappings(seed: int) -> None:
    einsum = walk.random_einsum(seed, iterations=1000)
    assert pairs(oro_plus(einsum)) == walk.front(einsum, walk.smallest, plus=True), einsum


@pytest.mark.parametrize(
    ("text", "extents"),
    [
        (GEMM, {"m": 7, "n": 5, "k": 4}),
        ("C[b,m,n] = sum(k, A[b,m,k] * B[b,k,n])", {"b": 2, "m": 4, "n": 3, "k": 3}),
        ("y[i,j] = x[i,j] * x[i,j]", {"i": 5, "j": 7}),
        ("y[i] = sum(k, x[2*i,k] * w[k])", {"i": 7, "k": 5}),
    ],
)
def test_without_halo_no_other_tile_is_better(text: str, extents: dict[str, int]) -> None:
    einsum = parse_einsum(text, extents)
    assert pairs(oro_plus(einsum)) == walk.front(einsum, walk.every, plus=True)


def least(front: list[tuple[int, int]], capacity: int) -> int:
    """Words that the best of a front moves within a capacity; none that fits moves more than any."""
    return min((moved for buffer, moved in front if buffer <= capacity), default=10**9)


@pytest.mark.parametrize("seed", seeds(10, 30))
def test_bounds_are_in_order(seed: int) -> None:
    einsum = walk.random_einsum(seed, iterations=40)
    optimum, plus, perfect = walk.front(einsum, walk.every, plus=True), pairs(oro_plus(einsum)), pairs(oro(einsum))
    for capacity in {buffer for buffer, _ in (*optimum, *plus, *perfect)}:
        counts = [least(front, capacity) for front in (optimum, plus, perfect)]
        assert [lb(einsum, capacity).traffic_bytes, *counts] == sorted([lb(einsum, capacity).traffic_bytes, *counts])


def most_saved(einsum: Einsum, space: Space) -> tuple[float, int]:
    """By how much a space moves less than one-directional loops over whole ragged tiles at most, and where."""
    sizes = {dim: tile_sizes(extent) for dim, extent in einsum.extents.items()}
    ragged = pareto(einsum, sizes, Space(ragged=True))
    curve = Curve("", 0, ragged)
    wider = pareto(einsum, sizes, space)
    return max((p.accesses / w.accesses, w.buffer_bytes) for w in wider if (p := curve.at(w.buffer_bytes)))


def test_uneven_retention_moves_a_third_less_in_seven_words() -> None:
    einsum = parse_einsum(GEMM, {"m": 256, "n": 256, "k": 256})
    saved, capacity = most_saved(einsum, Space(ragged=True, streams=True))
    assert (saved, capacity) == (pytest.approx(1.33, abs=0.005), 7)
    point = oro_plus(einsum).at(7)
    assert point is not None
    assert {point.mapping.tiles[dim] for dim in "mn"} == {2}
    assert point.mapping.streamed in ("A", "B")


def test_snake_order_moves_a_twelfth_less_where_few_tiles_are_left() -> None:
    einsum = parse_einsum(GEMM, {"m": 256, "n": 256, "k": 256})
    saved, capacity = most_saved(einsum, Space(ragged=True, snake=True))
    assert (saved, capacity) == (pytest.approx(1.09, abs=0.005), 256 * 256 + 256)


def test_ragged_tiles_move_up_to_half_less_on_the_square_gemm() -> None:
    einsum = parse_einsum(GEMM, {"m": 4096, "n": 4096, "k": 4096})
    sizes, seed = dict.fromkeys("mnk", tile_sizes(4096)), dict.fromkeys("mnk", divisors(4096))
    perfect, ragged = oro(einsum), pareto(einsum, sizes, Space(ragged=True), seed)
    ratios = [other.accesses / p.accesses for p in ragged if (other := perfect.at(p.buffer_bytes))]
    assert max(ratios) == pytest.approx(1.49, abs=0.005)
    assert sum(ratios) / len(ratios) == pytest.approx(1.21, abs=0.01)
    plus = oro_plus(einsum)
    better = [other.accesses <= p.accesses for p in ragged if (other := plus.at(p.buffer_bytes))]
    assert all(better)


def test_the_mapping_of_a_point_moves_what_the_point_says() -> None:
    curve = oro_plus(parse_einsum(GEMM, {"m": 100, "n": 90, "k": 70}, {"A": 16, "B": 4, "C": 32}))
    einsum = parse_einsum(GEMM, {"m": 100, "n": 90, "k": 70}, {"A": 16, "B": 4, "C": 32})
    for point in curve.points:
        assert point.accesses == sum(accesses(einsum, point.mapping).values())
        assert point.buffer_bytes == footprint(
            einsum, point.mapping.tiles, point.mapping.streamed, point.mapping.sliding
        )
        assert point.mapping.trips == {
            dim: -(-extent // point.mapping.tiles[dim]) for dim, extent in (("m", 100), ("n", 90), ("k", 70))
        }
        assert point.traffic_bytes >= 100 * 70 * 2 + 90 * 70 // 2 + 100 * 90 * 4
    assert curve.points[-1].traffic_bytes == 100 * 70 * 2 + 90 * 70 // 2 + 100 * 90 * 4


def test_large_problems_take_a_fraction_of_a_second() -> None:
    einsum = parse_einsum(GEMM, {"m": 4096, "n": 4096, "k": 4096})
    assert calls(lambda: oro_plus(einsum)) < 150_000
    curve = oro_plus(einsum)
    assert curve.mappings > 48_000_000


def test_the_engine_needs_no_compiler_and_no_onnx() -> None:
    code = "import sys, tilec.bounds.einsum.cache; print(sorted({'tvm', 'tvm_ffi', 'onnx', 'rich'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
