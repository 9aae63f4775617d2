"""Ranges added to those of a graph: intersections, origins, likely sizes, errors."""

from itertools import product

import pytest

from tests.ir.test_bind import small
from tilec.errors import UsageError
from tilec.ir.restrict import restricted
from tilec.ir.sizes import ANY_SIZE, SymbolRange, intersected

MODEL = SymbolRange(0, 512, origin="node emb (Gather)")
RECIPE = SymbolRange(1, 1000, 8, (128, 384), "recipe: shapes.seq")


@pytest.mark.feature("B07")
def test_the_intersection_holds_the_sizes_of_both() -> None:
    cases = [SymbolRange(low, high, d) for low, high, d in product((0, 3), (None, 9, 20), (1, 2, 6))]
    for a, b in product(cases, cases):
        both = intersected(a, b)
        assert [both.holds(size) for size in range(40)] == [a.holds(size) and b.holds(size) for size in range(40)]
        assert intersected(both, b) == intersected(both, a) == both


@pytest.mark.feature("B07")
def test_origins_are_of_the_ranges_that_limit() -> None:
    both = intersected(MODEL, RECIPE)
    assert both == SymbolRange(1, 512, 8, (128, 384), "node emb (Gather); recipe: shapes.seq")
    assert intersected(both, RECIPE) == both
    assert intersected(ANY_SIZE, RECIPE) == RECIPE
    assert intersected(MODEL, SymbolRange(likely=(64,), origin="r")) == SymbolRange(0, 512, 1, (64,), MODEL.origin)
    assert intersected(MODEL, SymbolRange(8, 64, origin="r")).origin == "r"


@pytest.mark.feature("B07")
def test_a_graph_is_restricted_once_and_again() -> None:
    graph = small()
    once = restricted(graph, {"batch": RECIPE})
    assert once.symbol_ranges == {"batch": RECIPE}
    assert restricted(once, {"batch": RECIPE}) is once
    assert restricted(graph, {}) is graph
    assert restricted(graph, {"batch": ANY_SIZE}) is graph


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch": SymbolRange(600, 700, origin="flag")}, r"600..700 \(flag\) and 0..512 \(node emb \(Gather\)\)"),
        ({"batch": SymbolRange(likely=(600,), origin="flag")}, "the likely size 600 is none of 0..512"),
        ({"bacth": SymbolRange(8, 512, 8)}, "no symbol 'bacth'"),
    ],
)
def test_ranges_that_do_not_fit(given: dict[str, SymbolRange], message: str) -> None:
    graph = restricted(small(), {"batch": MODEL})
    with pytest.raises(UsageError, match=message) as error:
        restricted(graph, given)
    assert error.value.hint in ("Take sizes that the model accepts.", "Did you mean 'batch'?")
