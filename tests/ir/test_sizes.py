"""Ranges of symbols and constraints: what they hold, pivots, what sizes break, binding, JSON."""

from dataclasses import replace

import pytest

from tests.ir.test_bind import small
from tilec.errors import UsageError
from tilec.ir.bind import bind
from tilec.ir.codec import graph_from_json, graph_to_json
from tilec.ir.evaluate import integer
from tilec.ir.expr import Var
from tilec.ir.sizes import Constraint, SymbolRange, broken_constraints, guarded_ranges, pivot_sizes, upper_bound
from tilec.ir.text import parse_expr
from tilec.ir.verify.graph import check_graph

SEQ = SymbolRange(5, 100, 8, (64, 16), "recipe.yaml: shapes.seq")


@pytest.mark.feature("B06")
def test_a_range_holds_multiples_between_its_ends() -> None:
    held = [size for size in range(120) if SEQ.holds(size)]
    assert held == [8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96]
    assert (SEQ.least, SEQ.most, SEQ.pivot) == (8, 96, 64)
    assert [SEQ.nearest(size) for size in (0, 17, 1000)] == [8, 16, 96]
    assert SEQ.text == "5..100, a multiple of 8"
    for wrong in ({"low": -1}, {"divisor": 0}, {"low": 9, "high": 15, "divisor": 8}, {"high": 3, "likely": (4,)}):
        with pytest.raises(ValueError, match="size"):
            SymbolRange(**wrong)  # type: ignore[arg-type]


@pytest.mark.feature("B06")
def test_pivots_and_upper_bounds() -> None:
    ranges = {"seq": SEQ, "past": SymbolRange(1, 2047)}
    assert pivot_sizes(["seq", "past", "batch"], ranges) == {"seq": 64, "past": 128, "batch": 128}
    assert upper_bound(parse_expr("(past + 1) * seq // 2"), ranges) == 2048 * 96 // 2
    assert upper_bound(Var("batch"), {"batch": SymbolRange()}) is None


@pytest.mark.feature("B08")
def test_broken_constraints_name_their_origin() -> None:
    constraints = (
        Constraint(parse_expr("seq <= 77"), "node pos/Gather"),
        Constraint(parse_expr("batch * seq % 12 == 0"), "node r/Reshape"),
    )
    assert broken_constraints(constraints, {"seq": SEQ}, {"seq": 72, "batch": 1}) == []
    assert broken_constraints(constraints, {"seq": SEQ}, {"seq": 81, "batch": 1}) == [
        "seq=81 is none of 5..100, a multiple of 8 (recipe.yaml: shapes.seq)",
        "seq <= 77 does not hold (node pos/Gather)",
        "batch * seq % 12 == 0 does not hold (node r/Reshape)",
    ]


@pytest.mark.feature("B08")
def test_binding_checks_and_consumes_constraints() -> None:
    graph = replace(
        small(),
        symbol_ranges={"batch": SymbolRange(1, 16, origin="recipe")},
        constraints=(Constraint(parse_expr("batch != 3"), "node f"),),
    )
    assert check_graph(graph) == ()
    assert graph_from_json(graph_to_json(graph)) == graph
    bound = bind(graph, {"batch": 4})
    assert (bound.symbol_ranges, bound.constraints) == ({}, ())
    for size, message in ((17, r"batch=17 is none of 1..16 \(recipe\)"), (3, r"batch != 3 does not hold \(node f\)")):
        with pytest.raises(UsageError, match=message):
            bind(graph, {"batch": size})
    wrong = replace(graph, symbol_ranges={"seq": SymbolRange()}, constraints=(Constraint(parse_expr("batch + 1")),))
    assert check_graph(wrong) == (
        "seq has a range and is no symbol of the graph",
        "the constraint batch + 1 is no comparison of sizes",
    )


@pytest.mark.feature("B06")
@pytest.mark.parametrize(
    "text",
    [
        "seq >= 64",
        "seq > 8 and 2*seq <= 91",
        "3*seq - 1 >= 50 and batch < 9",
        "seq == 32",
        "seq % 16 == 0 and seq >= 17",
        "not (seq < 20) and batch * seq >= 7",
    ],
)
def test_a_guard_narrows_ranges_to_where_it_may_hold(text: str) -> None:
    ranges = {"seq": SEQ}
    guard = parse_expr(text)
    found = guarded_ranges(guard, ("seq", "batch"), ranges)
    assert set(found) == {"seq", "batch"}
    for size in range(130):
        may = SEQ.holds(size) and any(integer(guard, {"seq": size, "batch": batch}) for batch in range(12))
        assert found["seq"].holds(size) == may, size
    assert set(found["seq"].likely) == {size for size in SEQ.likely if found["seq"].holds(size)}
    assert found["seq"].origin == SEQ.origin


def test_a_guard_that_no_size_fulfils_is_refused() -> None:
    assert guarded_ranges(parse_expr("True"), ("seq",), {}) == {"seq": SymbolRange()}
    with pytest.raises(ValueError, match="size"):
        guarded_ranges(parse_expr("seq > 99"), ("seq",), {"seq": SEQ})
