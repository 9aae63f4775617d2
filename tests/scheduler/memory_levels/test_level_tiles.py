"""tier tiles: candidate sizes, and how often loops load what they move."""

import numpy as np

from tilec.ir.expr import Const
from tilec.ir.text import parse_tensor
from tilec.scheduler.memory_levels.level_tiles import MAX_TILES, coarse, finer

EXTENTS = {"n": 1, "m": 8192, "c": 3, "k": 5}
EXPR = parse_tensor("y[n, m, c] = sum(k, x[n, m, c, k])", {i: Const(e) for i, e in EXTENTS.items()})


def test_coarse_goes_from_the_whole_to_one_element() -> None:
    tiles = coarse(EXPR, EXTENTS)
    assert tiles.loops == ("m", "c")
    assert [int(n[0]) for n in tiles.sizes.values()] == [8192, 3]
    assert [int(n[-1]) for n in tiles.sizes.values()] == [1, 1]
    volume = tiles.sizes["m"] * tiles.sizes["c"]
    assert (np.diff(volume) <= 0).all()
    assert 20 < tiles.number.size <= MAX_TILES
    assert (tiles.counts["m"] == -(-8192 // tiles.sizes["m"])).all()


def test_finer_looks_around_and_rounds_to_grains() -> None:
    tiles = finer({"m": 2752, "c": 3}, EXTENTS)
    assert {2752, 2048, 4096} <= set(tiles.sizes["m"].tolist())
    assert all(size % 32 == 0 for size in tiles.sizes["m"].tolist() if size < 8192)
    assert set(tiles.sizes["c"].tolist()) == {3, 2}


def test_a_scalar_has_one_candidate() -> None:
    expr = parse_tensor("s[()] = sum(k, x[k])", {"k": Const(4)})
    tiles = coarse(expr, {"k": 4})
    assert (tiles.loops, tiles.number.tolist(), tiles.orders) == ((), [1.0], ((),))
    assert tiles.inner.tolist() == [[0]]


def test_times_counts_down_to_the_innermost_loop_that_moves() -> None:
    tiles = coarse(EXPR, EXTENTS)
    at = int(np.flatnonzero((tiles.counts["m"] > 3) & (tiles.counts["c"] == 3))[0])
    m = int(tiles.counts["m"][at])
    assert tiles.orders == ((0, 1), (1, 0))
    assert tiles.times(0)[:, at].tolist() == [1, 1]
    assert tiles.times(0b01)[:, at].tolist() == [m, 3 * m]
    assert tiles.times(0b10)[:, at].tolist() == [3 * m, 3]
    assert tiles.inner[:, at].tolist() == [1, 0]


def test_tiles_that_cut_unevenly_are_handicapped() -> None:
    tiles = coarse(EXPR, EXTENTS)
    even = (8192 % tiles.sizes["m"] == 0) & (3 % tiles.sizes["c"] == 0)
    assert even.any()
    assert not even.all()
    assert (tiles.handicap[even] == 1).all()
    assert (tiles.handicap[~even] > 1).all()
