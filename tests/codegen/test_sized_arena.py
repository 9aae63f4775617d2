"""Places at all sizes: brute force over random lives, sizes and symbols."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codegen.test_shape_program import SYMBOLS, builder, values_of
from tilec.codegen.sized_arena import SizedLife, sized_arena
from tilec.ir.evaluate import integer
from tilec.ir.memory_plan import Life, most_alive, plan_memory
from tilec.ir.text import parse_expr

PIVOTS = {"batch": 4, "seq": 100, "past": 30}
BYTES = ("0", "64", "1000", "seq * 4", "batch * 12", "batch * seq * 4", "past * seq", "maximum(seq - past, 0) * 8")


@st.composite
def lives(draw, sizes=BYTES):
    count = draw(st.integers(1, 12))
    spans = [sorted(draw(st.tuples(st.integers(0, 9), st.integers(0, 9)))) for _ in range(count)]
    return [SizedLife(f"t{n}", parse_expr(draw(st.sampled_from(sizes))), *span) for n, span in enumerate(spans)]


def together(a, b):
    return a.born <= b.dies and b.born <= a.dies


def placed(given_lives, numbers, sizes, alignment=64):
    """(arena, begin, end) of every life, and the bytes of the arenas."""
    arena = sized_arena(given_lives, numbers, PIVOTS, alignment)
    values = values_of(numbers, sizes)
    places = {}
    for life in given_lives:
        place = arena.places[life.name]
        begin = values[place.offset]
        places[life.name] = (place.arena, begin, begin + int(integer(life.size, sizes)))
    return arena, places, [values[n] for n in arena.sizes]


@pytest.mark.feature("B24")
@settings(max_examples=200, deadline=None)
@given(lives(), st.lists(st.fixed_dictionaries({n: st.integers(0, 300) for n in SYMBOLS}), min_size=1, max_size=4))
def test_tensors_that_live_together_never_overlap(given_lives, trials):
    for sizes in trials:
        arena, places, totals = placed(given_lives, builder(parts=(0, 0, 1)), sizes)
        for n, a in enumerate(given_lives):
            where, begin, end = places[a.name]
            assert begin % 64 == 0
            assert end <= totals[where]
            for b in given_lives[n + 1 :]:
                other, start, stop = places[b.name]
                disjoint = other != where or end <= start or stop <= begin
                assert disjoint or not together(a, b)
                if b.name in arena.apart[a.name]:
                    assert a.name in arena.apart[b.name]
                    assert disjoint


@settings(max_examples=60, deadline=None)
@given(lives())
def test_at_the_sizes_that_decide_the_arena_is_that_of_best_fit(given_lives):
    _, _, totals = placed(given_lives, builder(), PIVOTS)
    fixed = [Life(e.name, int(integer(e.size, PIVOTS)), e.born, e.dies) for e in given_lives]
    assert sum(totals) <= plan_memory(fixed, 64).size
    assert sum(totals) >= most_alive(fixed)


def test_sizes_that_a_call_reports_lie_apart():
    """What lies in the first arena has its place before the call."""
    given_lives = [
        SizedLife("a", parse_expr("seq * 4"), 0, 3),
        SizedLife("b", parse_expr("past * 4"), 1, 3),
        SizedLife("c", parse_expr("seq * 8"), 2, 3),
    ]
    numbers = builder(parts=(0, 0, 1))
    arena, places, totals = placed(given_lives, numbers, {"batch": 1, "seq": 10, "past": 7})
    assert [places[name][0] for name in "abc"] == [0, 1, 0]
    assert totals == [192, 64]
    parts = numbers.numbers.parts
    assert [parts[n] for n in arena.sizes] == [0, 1]
    assert all(parts[place.offset] == 0 for name, place in arena.places.items() if name != "b")


def test_nothing_needs_no_arena():
    assert sized_arena([], builder(), PIVOTS, 64).sizes == ()
