"""Tasks side by side: against brute force that walks every task, and in order with the bounds of one unit."""

from __future__ import annotations

import random

import pytest

from bounds import grids, walk
from tests.examples import seeds
from tilec.bounds.einsum.cost import accesses, footprint
from tilec.bounds.einsum.curve import Curve
from tilec.bounds.einsum.einsum import parse_einsum
from tilec.bounds.einsum.oro_plus import oro_plus, parallel

GEMM = "C[m,n] = sum(k, A[m,k] * B[k,n])"
CONV = "O[q,p,k] = sum(r,s,c, I[p+r,q+s,c] * W[r,s,c,k])"


def pairs(curve: Curve) -> list[tuple[int, int]]:
    return [(point.buffer_bytes, point.accesses) for point in curve.points]


def units_of(seed: int) -> int:
    return random.Random(seed).choice((2, 3, 4, 6, 8))


@pytest.mark.feature("O10")
@pytest.mark.parametrize("seed", seeds(12, 40))
def test_curves_are_the_front_of_all_grids_walked_task_by_task(seed: int) -> None:
    einsum, units = walk.random_einsum(seed, iterations=90), units_of(seed)
    assert pairs(parallel(einsum, units)) == grids.front(einsum, units), einsum


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_many_curves_are_the_front_of_all_grids(seed: int) -> None:
    einsum, units = walk.random_einsum(seed, iterations=300), units_of(seed)
    assert pairs(parallel(einsum, units)) == grids.front(einsum, units), einsum


@pytest.mark.feature("O10")
@pytest.mark.parametrize(
    ("text", "extents"),
    [(GEMM, {"m": 5, "n": 3, "k": 4}), ("C[b,m] = sum(k, A[b,m,k] * B[b,k])", {"b": 3, "m": 4, "k": 3})],
)
def test_no_tiling_in_enough_tasks_moves_less(text: str, extents: dict[str, int]) -> None:
    einsum = parse_einsum(text, extents)
    for units in (2, 5, 7):
        assert pairs(parallel(einsum, units)) == grids.front(einsum, units, walk.every)


@pytest.mark.feature("O10")
@pytest.mark.parametrize("seed", seeds(10, 30))
def test_more_units_never_move_less(seed: int) -> None:
    einsum = walk.random_einsum(seed, iterations=2000)
    curves = [oro_plus(einsum), *(parallel(einsum, units) for units in (1, 2, 4, 9))]
    for capacity in (point.buffer_bytes for curve in curves for point in curve.points):
        moved = [point.accesses if point else 10**9 for point in (curve.at(capacity) for curve in curves)]
        assert moved == sorted(moved)
        assert moved[0] == moved[1]


def test_one_capacity_is_a_point_of_the_curve() -> None:
    einsum = parse_einsum(CONV, {"q": 8, "p": 8, "k": 6, "r": 3, "s": 3, "c": 4}, {"I": 8, "W": 16, "O": 32})
    curve = parallel(einsum, 12)
    for point in curve.points[::15]:
        (found,) = parallel(einsum, 12, point.buffer_bytes).points
        assert found.traffic_bytes == point.traffic_bytes
    assert parallel(einsum, 12, curve.points[0].buffer_bytes - 1).points == ()


def test_the_mapping_of_a_point_moves_what_the_point_says() -> None:
    einsum = parse_einsum(GEMM, {"m": 30, "n": 40, "k": 70}, {"A": 16, "B": 4, "C": 32})
    for point in parallel(einsum, 20).points:
        mapping = point.mapping
        assert point.accesses == sum(accesses(einsum, mapping).values())
        assert point.buffer_bytes == footprint(einsum, mapping.tiles, mapping.streamed, mapping.sliding)
        assert str(mapping).split()[1] == "tasks"


@pytest.mark.feature("O10")
def test_tiles_that_share_nothing_move_the_same_on_many_units() -> None:
    # Every iterator is in every tensor: the tiles of one unit are the tasks of many.
    einsum = parse_einsum("y[i,j] = x[i,j] * z[i,j]", {"i": 64, "j": 48})
    assert parallel(einsum, 108).points[-1].accesses == oro_plus(einsum).points[-1].accesses


@pytest.mark.feature("O10")
def test_units_read_their_operands_each_for_itself() -> None:
    """A product whose operands fit one buffer whole: four units in a square read each operand twice."""
    einsum = parse_einsum(GEMM, {"m": 8, "n": 8, "k": 2})
    assert oro_plus(einsum).points[-1].accesses == 16 + 16 + 64
    assert parallel(einsum, 4).points[-1].accesses == 2 * 16 + 2 * 16 + 64


@pytest.mark.feature("O10")
def test_a_reduction_is_cut_where_the_output_has_too_few_elements() -> None:
    einsum = parse_einsum(GEMM, {"m": 1, "n": 4, "k": 64})
    point = parallel(einsum, 8).points[-1]
    assert dict(point.mapping.tasks)["k"] >= 2
    splits = dict(point.mapping.tasks)["k"]
    assert point.accesses == 64 * dict(point.mapping.tasks).get("n", 1) + 4 * 64 + (2 * splits - 1) * 4


def test_more_units_than_elements_and_parts_of_the_reduction_have_no_mapping() -> None:
    assert parallel(parse_einsum("y[i] = x[i] * x[i]", {"i": 7}), 8).points == ()
    assert parallel(parse_einsum(GEMM, {"m": 2, "n": 2, "k": 2}), 8).points
    assert parallel(parse_einsum(GEMM, {"m": 2, "n": 2, "k": 2}), 9).points == ()
    whole = frozenset("n")
    assert parallel(parse_einsum(GEMM, {"m": 2, "n": 9, "k": 2}), 5, 100, whole).points == ()
    (point,) = parallel(parse_einsum(GEMM, {"m": 4, "n": 9, "k": 2}), 4, 100, whole).points
    assert point.mapping.tiles["n"] == 9
