"""The arena: tensors alive together never overlap, and those that are not share bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilec.ir.memory_plan import Life, most_alive, plan_memory

ALIGNMENT = 64

LIVES = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 12), st.integers(0, 6)),
    max_size=24,
).map(lambda rows: [Life(f"T{i}", size, born, born + length) for i, (size, born, length) in enumerate(rows)])


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


@pytest.mark.feature("W08", "B24")
@given(LIVES)
def test_places_are_disjoint_aligned_and_inside(lives: list[Life]) -> None:
    arena = plan_memory(lives, ALIGNMENT)
    for a in lives:
        start = arena.offsets[a.name]
        assert start % ALIGNMENT == 0
        assert 0 <= start <= start + _padded(a.size) <= arena.size
        for b in lives:
            together = a.born <= b.dies and b.born <= a.dies
            if a is not b and together and a.size and b.size:
                other = arena.offsets[b.name]
                assert start + a.size <= other or other + b.size <= start


def test_places_are_aligned_as_the_device_asks() -> None:
    arena = plan_memory([Life("a", 100, 0, 1), Life("b", 300, 0, 1), Life("c", 10, 0, 1)], 256)
    assert sorted(arena.offsets.values()) == [0, 512, 768]
    assert arena.size == 1024


@pytest.mark.feature("W08", "B24")
def test_a_chain_needs_two_tensors_at_a_time() -> None:
    chain = [Life(f"T{i}", 1000, i, i + 1) for i in range(10)]
    assert plan_memory(chain, ALIGNMENT).size == 2 * _padded(1000)


@pytest.mark.feature("W08", "B24")
def test_the_smallest_gap_that_fits_is_taken() -> None:
    lives = [
        Life("big", 6400, 0, 1),
        Life("wall", 640, 0, 9),
        Life("other", 3200, 0, 1),
        Life("end", 64, 0, 9),
        Life("late", 3200, 2, 3),
    ]
    arena = plan_memory(lives, ALIGNMENT)
    assert arena.size == 6400 + 640 + 3200 + 64
    assert plan_memory([], ALIGNMENT).size == 0


def test_a_gap_is_not_broken_into_while_a_smaller_one_will_do() -> None:
    """Gaps of 48 and 32 lines, in this order, hold 32 + 24 + 24 lines only where the first of them takes the second."""
    lines = {"first": (100, 0, 3), "before": (48, 0, 1), "between": (40, 0, 3), "behind": (32, 0, 1), "end": (32, 0, 3)}
    late = {"x": (32, 2, 3), "y": (24, 2, 3), "z": (24, 2, 3)}
    lives = [Life(name, n * ALIGNMENT, born, dies) for name, (n, born, dies) in (lines | late).items()]
    arena = plan_memory(lives, ALIGNMENT)
    assert arena.offsets["x"] == arena.offsets["behind"]
    assert {arena.offsets["y"], arena.offsets["z"]} == {arena.offsets["before"] + n * ALIGNMENT for n in (0, 24)}
    assert arena.size == (100 + 48 + 40 + 32 + 32) * ALIGNMENT


def test_what_ends_too_high_goes_first_in_the_next_attempt() -> None:
    """Buffers of an attention kernel: largest first takes 99,328 bytes, where 89,088 are alive at once."""
    sizes = [
        (11264, 2, 11),
        (5632, 4, 11),
        (5632, 6, 11),
        (11264, 7, 25),
        (32768, 14, 17),
        (32768, 15, 25),
        (22528, 20, 25),
        (22528, 21, 33),
        (176, 27, 33),
        (22528, 31, 41),
        (176, 35, 41),
        (22528, 39, 47),
        (32768, 44, 47),
        (11264, 45, 48),
    ]
    lives = [Life(f"T{i}", *life) for i, life in enumerate(sizes)]
    assert plan_memory(lives, 16).size == most_alive(lives) == 89088
