"""Classes of sizes and the limits of their guards, from predicted times alone (B09)."""

from __future__ import annotations

import tracemalloc

import pytest

from tilec.ir.expr import Const
from tilec.ir.text import parse_expr, text_of
from tilec.scheduler.building.choose_classes import TimedClass, VariantPrices, choose_classes

ROWS = [{"rows": n} for n in (4, 64, 1024)]


def chosen(classes: list[TimedClass], most: int = 3, rare: float = 0.97) -> list[tuple[int, str, bool]]:
    """The classes that get variants; the first of the sizes is likely."""
    found = choose_classes(classes, ROWS, VariantPrices(most, narrower=1, rare=rare, gains=(0.97, rare, rare)))
    return [(each.number, text_of(each.guard), each.last) for each in found]


def timed(guard: str, *seconds: float, serves_all: bool = True) -> TimedClass:
    return TimedClass(parse_expr(guard), seconds, serves_all)


@pytest.mark.feature("B09")
def test_a_class_that_is_good_at_all_sizes_is_alone() -> None:
    assert chosen([timed("True", 1, 2, 3), timed("rows >= 8", 2, 2, 2.95)]) == [(0, "True", True)]


@pytest.mark.feature("B09")
def test_a_limit_tells_sizes_apart_at_which_two_tiles_are_legal() -> None:
    """Between the sizes that were looked at, about their geometric mean: sqrt(64 * 1024) = 256."""
    found = chosen([timed("rows >= 8", 9, 3, 1), timed("True", 1, 1, 2)])
    assert found == [(0, "rows >= 257", False), (1, "True", True)]


@pytest.mark.feature("B09")
def test_a_limit_from_above_keeps_what_the_tile_needs() -> None:
    found = chosen([timed("rows >= 32", 9, 1, 9), timed("True", 1, 9, 1)])
    assert found == [(0, "rows >= 32 and rows < 257", False), (1, "True", True)]


@pytest.mark.feature("B09")
def test_the_least_guard_stays_where_a_limit_gains_nothing() -> None:
    found = chosen([timed("rows >= 8", 9, 1, 1), timed("True", 1, 3, 3)])
    assert found == [(0, "rows >= 8", False), (1, "True", True)]


@pytest.mark.feature("B09")
def test_less_than_a_call_takes_is_no_gain() -> None:
    found = chosen([timed("rows >= 8", 9e-9, 3e-9, 1e-9), timed("True", 1e-9, 1e-9, 2e-9)])
    assert [guard for _, guard, _ in found if "257" in guard] == []


@pytest.mark.feature("B09")
def test_the_last_variant_is_one_that_fits_at_all_sizes() -> None:
    found = chosen([timed("True", 1, 1, 1, serves_all=False), timed("rows >= 8", 2, 2, 2)], most=1)
    assert found == [(1, text_of(Const(True)), True)]


@pytest.mark.feature("B09")
def test_a_variant_gains_more_where_no_size_is_likely() -> None:
    """A tenth less time pays a variant at a size that is likely, at others only what the machine's class demands."""
    tenth, half = [timed("True", 1, 1, 1), timed("rows >= 32", 9, 0.9, 0.9)], timed("rows >= 32", 9, 0.5, 0.9)
    assert len(chosen(tenth)) == 2
    assert len(chosen(tenth, rare=0.8)) == 1
    assert len(chosen([tenth[0], half], rare=0.8)) == 2
    assert len(chosen([timed("rows < 32", 0.9, 2, 2), tenth[0]], rare=0.8)) == 2


@pytest.mark.feature("B09")
def test_limits_add_no_variant_where_variants_are_dear() -> None:
    """A limit serves the third size as well; with variants that cost little it comes with one of its own."""
    classes = [timed("True", 1, 1, 1.2), timed("rows >= 8", 9, 9, 1)]
    assert len(chosen(classes)) == 2
    assert len(chosen(classes, rare=0.8)) == 1


@pytest.mark.feature("B09")
def test_a_likely_size_decides_between_two_classes() -> None:
    """The first class loses 10 % at the likely size, the second one half at another one."""
    classes = [timed("True", 1.1, 1, 1), timed("True", 1, 1, 1.5)]
    assert chosen(classes, most=1, rare=0.8) == [(1, "True", True)]
    assert chosen(classes, most=1) == [(0, "True", True)]


@pytest.mark.feature("B09")
def test_the_class_of_the_variant_for_all_sizes_has_no_other_variant() -> None:
    """Where narrower tiles cost nothing: what comes after it runs where its guard does not hold."""
    first, second = timed("rows >= 128", 1, 9, 1), timed("rows >= 8", 9, 1, 9)
    assert chosen([first, second]) == [(1, "rows >= 8 and rows < 128", False), (0, "True", True)]
    guarded = choose_classes([first, second], ROWS, VariantPrices(3, narrower=1.01, rare=0.97, gains=(0.97,) * 3))
    assert [each.number for each in guarded] == [0, 1, 0]


@pytest.mark.feature("B09")
def test_sizes_that_no_run_has_tell_nothing() -> None:
    """A time below nothing is that of an extent below nothing: the height of an image less a window's."""
    classes = [timed("True", -1, 1, 1), timed("rows >= 8", -9, 1, 1)]
    assert chosen(classes, rare=0.8) == chosen(classes) == [(0, "True", True)]


@pytest.mark.feature("B09")
def test_many_classes_of_many_sizes_take_little_memory() -> None:
    """Twenty classes with forty limits each have 300,000 pairs."""
    names = ("batch", "height", "width")
    sizes = [{name: 4 ** (1 + (n >> 2 * place) % 4) for place, name in enumerate(names)} for n in range(0, 64, 3)]
    guards = [" and ".join(f"{name} >= {2 + n % (3 + place)}" for place, name in enumerate(names)) for n in range(19)]
    rows = range(len(sizes))
    classes = [timed(guard, *(1 + (7 * n + at) % 19 for at in rows)) for n, guard in enumerate(guards)]
    classes.append(timed("True", *(1 if sizes[at]["width"] < 60 else 90 for at in rows)))
    tracemalloc.start()
    try:
        found = choose_classes(classes, sizes, VariantPrices(4, 1, 0.97, [0.97] * len(sizes)))
        assert tracemalloc.get_traced_memory()[1] < 64e6
    finally:
        tracemalloc.stop()
    assert len(found) > 1
