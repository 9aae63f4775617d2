"""Layered drawings: rows follow the links, nothing overlaps, long links run down trunks."""

from collections import defaultdict
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from work import calls

from tilec.report.html.layout import FAR, LANE, PITCH, layered


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 24))
    pairs = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=50))
    return count, sorted({(a, b) for a, b in pairs if a < b})


@given(graphs())
@settings(max_examples=60)
def test_readers_are_below_and_nothing_overlaps(graph):
    count, links = graph
    drawn = layered(count, links)
    assert all(drawn.rows[a] < drawn.rows[b] for a, b in links)
    widths = defaultdict(list)
    for item in range(count):
        widths[drawn.rows[item]].append((drawn.x[item], PITCH))
    for item, trunk in drawn.trunks.items():
        for step, x in enumerate(trunk):
            widths[drawn.rows[item] + 1 + step].append((x, LANE))
    for row in widths.values():
        row.sort()
        assert all(b - a >= (wide + other) // 2 - 1 for (a, wide), (b, other) in pairwise(row))
    assert min(drawn.x) >= PITCH // 2 - 1
    assert max(drawn.x) + PITCH // 2 <= drawn.width + 1
    for a, b in links:
        assert len(drawn.trunks.get(a, ())) >= drawn.rows[b] - drawn.rows[a] - 1


def test_a_chain_is_a_straight_line_every_time():
    drawn = layered(5, [(n, n + 1) for n in range(4)])
    assert drawn.rows == (0, 1, 2, 3, 4)
    assert len(set(drawn.x)) == 1
    assert drawn == layered(5, [(n, n + 1) for n in range(4)])


def test_crossings_are_taken_out():
    drawn = layered(6, [(0, 3), (1, 2), (0, 4), (1, 5)])
    left, right = sorted((0, 1), key=lambda item: drawn.x[item])
    readers = {0: (3, 4), 1: (2, 5)}
    assert max(drawn.x[r] for r in readers[left]) < min(drawn.x[r] for r in readers[right])


def test_several_readers_share_one_trunk():
    drawn = layered(6, [*((n, n + 1) for n in range(5)), (0, 3), (0, 5)])
    assert len(drawn.trunks[0]) == 4
    assert set(drawn.trunks) == {0}


def test_sources_stand_above_their_first_reader():
    links = [(0, 1), (1, 2), (2, 3), (4, 3)]
    assert layered(5, links).rows[4] == 0
    assert layered(5, links, frozenset({4})).rows[4] == 2
    assert layered(2, [], frozenset({0, 1})).rows == (0, 0)


def test_a_reader_too_far_below_is_not_drawn_to():
    count = FAR + 5
    chain = [(n, n + 1) for n in range(count - 1)]
    assert 0 not in layered(count, [*chain, (0, count - 1)]).trunks
    assert len(layered(count, [*chain, (0, FAR)]).trunks[0]) == FAR - 1


def test_nothing_and_a_cycle():
    assert layered(0, []).x == ()
    assert len(layered(3, [(0, 1), (1, 2), (2, 0)]).rows) == 3


def test_thousands_of_groups_take_a_moment():
    count = 2600
    links = [(n, n + 1) for n in range(count - 1)] + [(n, n + 9) for n in range(0, count - 9, 7)]
    assert calls(lambda: layered(count, links)) < 3_000_000
    assert max(layered(count, links).rows) == count - 1
