"""Boxes over loop grids against sets of points."""

from collections.abc import Callable
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tilec.ir import regions as module
from tilec.ir.regions import (
    PRESENT,
    Region,
    at_position,
    covered,
    disjoint,
    empty,
    inside,
    intersection,
    ints,
    merged,
    overlaps,
    repeats,
    sampled,
    united,
    varies,
)

Points = set[tuple[int, ...]]


@st.composite
def regions(draw: Callable, trips: tuple[int, ...], rank: int = 2) -> Region:
    """Intervals that depend on some of the loops, clipped and shifted as tiles are."""
    grids = [np.arange(n).reshape([n] + [1] * depth) for depth, n in enumerate(trips)]

    def end() -> np.ndarray:
        total = ints(draw(st.integers(-2, 3)))
        for grid in grids:
            if draw(st.booleans()):
                total = total + grid * draw(st.integers(-2, 3))
        if draw(st.integers(0, 3)) == 0:
            total = np.minimum(total, draw(st.integers(0, 4)))
        return total

    dims = []
    for _ in range(rank):
        lo = end()
        dims.append((lo, lo + draw(st.integers(0, 3)) if draw(st.booleans()) else end()))
    present = PRESENT if draw(st.integers(0, 2)) else (ints(0), ints(grids[0] < draw(st.integers(0, trips[0]))))
    return (present, *dims)


def points(region: Region, position: tuple[int, ...], trips: tuple[int, ...]) -> Points:
    """The points at one position; the outermost loop is the last axis."""
    ends = at_position(region, ints(position), tuple(reversed(trips)))
    return set(product(*(range(lo, hi) for lo, hi in ends)))


def positions(trips: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(product(*(range(n) for n in reversed(trips))))


TRIPS = st.tuples(st.integers(1, 4), st.integers(1, 4))


@settings(max_examples=80, deadline=None)
@given(st.data(), TRIPS)
def test_comparisons(data: st.DataObject, trips: tuple[int, int]) -> None:
    a, b, c = (data.draw(regions(trips)) for _ in range(3))
    every = positions(trips)
    sets = [[points(r, p, trips) for p in every] for r in (a, b, c)]
    assert bool(inside(a, b).all()) == all(x <= y for x, y in zip(sets[0], sets[1], strict=True))
    assert bool(empty(a).all()) == all(not x for x in sets[0])
    assert disjoint(a, b) == all(not x & y for x, y in zip(sets[0], sets[1], strict=True))
    assert covered(a, [b, c]) == all(x <= y | z for x, y, z in zip(*sets, strict=True))
    common = intersection(a, b)
    assert all(points(common, p, trips) == x & y for p, x, y in zip(every, sets[0], sets[1], strict=True))


@settings(max_examples=100, deadline=None)
@given(st.data(), TRIPS, st.integers(0, 1))
def test_iterations(data: st.DataObject, trips: tuple[int, int], depth: int) -> None:
    region = data.draw(regions(trips))
    other = range(trips[1 - depth])

    def at(i: int, j: int) -> Points:
        return points(region, (j, i) if depth == 0 else (i, j), trips)

    boxes = united(region, depth)
    assert boxes is not None
    for j in other:
        here = (j, 0) if depth == 0 else (0, j)
        shape = (trips[0] if depth else 1, trips[1] if depth == 0 else 1)
        swept = set().union(*(points(box, here, shape if depth == 0 else (trips[0], 1)) for box in boxes))
        assert swept == set().union(*(at(i, j) for i in range(trips[depth])))
    twice = any(at(i, j) & at(k, j) for j in other for i in range(trips[depth]) for k in range(i))
    assert overlaps(region, depth, trips[depth]) == twice
    again = any(at(i, j) and at(i, j) == at(i - 1, j) for j in other for i in range(1, trips[depth]))
    assert repeats(region, depth, trips[depth]) or not again
    if not varies(region, depth):
        assert all(at(i, j) in (at(0, j), set()) or not at(0, j) for j in other for i in range(trips[depth]))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 4)] * 4), max_size=5))
def test_merged_boxes_hold_the_same(ends: list[tuple[int, int, int, int]]) -> None:
    boxes: list[Region] = [(PRESENT, (ints(a), ints(a + b)), (ints(c), ints(c + d))) for a, b, c, d in ends]

    def union(parts: list[Region]) -> Points:
        return set().union(*(points(part, (), ()) for part in parts))

    assert union(merged(boxes)) == union(boxes)
    assert len(merged(boxes)) <= len(boxes)


def test_two_boxes_are_one_exactly_where_nothing_lies_between_them() -> None:
    for a, b, c, d in product(range(5), repeat=4):
        if a < b and c < d:
            pair: list[Region] = [(PRESENT, (ints(lo), ints(hi)), (ints(0), ints(2))) for lo, hi in ((a, b), (c, d))]
            assert len(merged(pair)) == (1 if max(a, c) <= min(b, d) else 2), (a, b, c, d)


def test_a_sweep_is_one_box_exactly_where_steps_are_no_longer_than_the_window() -> None:
    index = np.arange(3)
    for step, width in product(range(1, 5), repeat=2):
        moving: Region = (PRESENT, (index * step, index * step + width))
        boxes = united(moving, 0) or []
        ends = [(int(np.squeeze(lo)), int(np.squeeze(hi))) for _, (lo, hi) in boxes]
        assert {x for lo, hi in ends for x in range(lo, hi)} == {i * step + x for i in range(3) for x in range(width)}
        assert (len(boxes) == 1) is (step <= width)
        assert overlaps(moving, 0, 3) is (width > step)


def test_an_adjacent_sweep_is_one_box() -> None:
    index = np.arange(5)
    lo = np.minimum(index * 4, 14)
    (box,) = united((PRESENT, (lo, lo + 4)), 0) or []
    assert [(int(np.squeeze(a)), int(np.squeeze(b))) for a, b in box] == [(0, 1), (0, 18)]


def test_too_many_pieces_are_not_followed(monkeypatch: object) -> None:
    index = np.arange(1000)
    gaps: Region = (PRESENT, (index * 3, index * 3 + 1))
    assert united(gaps, 0) is None
    assert len(united((PRESENT, (index[:9] * 3, index[:9] * 3 + 1)), 0) or []) == 9


def test_long_loops_are_sampled_at_their_ends() -> None:
    inner, outer = np.arange(4096).reshape(4096, 1), np.arange(4096)
    (small,) = sampled((PRESENT, (inner * 2 + outer, inner * 2 + outer + 5)))
    assert small[1][0].size <= module.MAX_POSITIONS
    assert small[1][0].max() == 4095 * 3
    assert not disjoint((PRESENT, (inner, inner + 1)), (PRESENT, (outer, outer + 1)))
