from __future__ import annotations

import pytest

from bounds import walk
from tilec.bounds.curve import Curve
from tilec.bounds.einsum import parse_einsum
from tilec.bounds.lower import lb
from tilec.bounds.oro import oro
from tilec.bounds.oro_plus import oro_plus, tile_sizes

GEMM = "C[m,n] = sum(k, A[m,k] * B[k,n])"


def pairs(curve: Curve) -> list[tuple[int, int]]:
    return [(point.buffer_bytes, point.accesses) for point in curve.points]


def test_tile_sizes_are_the_smallest_for_their_number() -> None:
    assert all(tile_sizes(extent) == walk.smallest(extent) for extent in range(1, 400))


@pytest.mark.parametrize("seed", range(42))
def test_curves_are_the_front_of_ragged_tilings_walked_over_element_sets(seed: int) -> None:
    einsum = walk.random_einsum(seed)
    assert pairs(oro_plus(einsum)) == walk.front(einsum, walk.smallest), einsum


@pytest.mark.parametrize(
    ("text", "extents"),
    [
        (GEMM, {"m": 7, "n": 5, "k": 6}),
        ("C[b,m,n] = sum(k, A[b,m,k] * B[b,k,n])", {"b": 3, "m": 5, "n": 3, "k": 4}),
        ("y[i,j] = x[i,j] * x[i,j]", {"i": 5, "j": 7}),
        ("y[i] = sum(k, x[2*i,k] * w[k])", {"i": 7, "k": 5}),
    ],
)
def test_without_halo_no_other_tile_is_better(text: str, extents: dict[str, int]) -> None:
    einsum = parse_einsum(text, extents)
    assert pairs(oro_plus(einsum)) == walk.front(einsum, walk.every)


@pytest.mark.parametrize("seed", range(200))
def test_bounds_are_in_order(seed: int) -> None:
    einsum = walk.random_einsum(seed)
    ragged = oro_plus(einsum)
    for point in oro(einsum).points:
        better = ragged.at(point.buffer_bytes)
        assert better is not None
        assert lb(einsum, point.buffer_bytes).traffic_bytes <= better.traffic_bytes <= point.traffic_bytes


def test_ragged_tiles_move_up_to_half_less_on_the_square_gemm() -> None:
    einsum = parse_einsum(GEMM, {"m": 4096, "n": 4096, "k": 4096})
    perfect, ragged = oro(einsum), oro_plus(einsum)
    ratios = [other.accesses / p.accesses for p in ragged.points if (other := perfect.at(p.buffer_bytes))]
    assert max(ratios) == pytest.approx(1.49, abs=0.005)
    assert sum(ratios) / len(ratios) == pytest.approx(1.21, abs=0.01)


def test_the_mapping_of_a_point_moves_what_the_point_says() -> None:
    curve = oro_plus(parse_einsum(GEMM, {"m": 100, "n": 90, "k": 70}, {"A": 16, "B": 4, "C": 32}))
    for point in curve.points:
        assert point.mapping.trips == {
            dim: -(-extent // point.mapping.tiles[dim]) for dim, extent in (("m", 100), ("n", 90), ("k", 70))
        }
        assert point.traffic_bytes >= 100 * 70 * 2 + 90 * 70 // 2 + 100 * 90 * 4
    assert curve.points[-1].traffic_bytes == 100 * 70 * 2 + 90 * 70 // 2 + 100 * 90 * 4
