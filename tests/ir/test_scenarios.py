"""Scenarios: relations of sizes, sizes that decisions are made for, what cannot occur."""

from dataclasses import replace

import pytest

from tilec.errors import ConfigError
from tilec.ir.bind import bind
from tilec.ir.expr import Const
from tilec.ir.graph import Graph
from tilec.ir.scenarios import ScenarioError, scenario_sizes, scenario_text, with_scenarios
from tilec.ir.sizes import Constraint, Scenario, SymbolRange, SymbolValue, further_sizes, pivot_sizes
from tilec.ir.text import parse_expr

SYMBOLS = ("batch", "seq", "past", "total", "room")
RANGES = {"past": SymbolRange(0, 4095, origin="node positions")}
CONSTRAINTS = (
    Constraint(parse_expr("total <= room"), "node cache"),
    Constraint(parse_expr("seq <= total"), "node mask"),
)
GRAPH = Graph("g", SYMBOLS, (), (), {}, {}, (), symbol_ranges=RANGES, constraints=CONSTRAINTS)


def scenarios(**relations: str) -> dict[str, Scenario]:
    """`decode="seq: 1, total: past + 1"` as scenarios."""
    pairs = {n: dict(part.split(": ") for part in text.split(", ") if part) for n, text in relations.items()}
    return {n: Scenario({s: parse_expr(e) for s, e in of.items()}, origin=f"recipe: {n}") for n, of in pairs.items()}


NAMED = scenarios(decode="seq: 1, total: past + 1", prefill="past: 0, total: seq")


def test_decisions_are_made_for_sizes_that_occur_together() -> None:
    given = replace(GRAPH, symbol_ranges={**RANGES, "room": SymbolRange(likely=(1024,))})
    graph = with_scenarios(given, NAMED, {"past": (511,), "seq": (1, 64)})
    pivot, (further,) = (each(graph.symbols, graph.symbol_ranges) for each in (pivot_sizes, further_sizes))
    assert {**pivot, "batch": 0} == {"batch": 0, "seq": 1, "past": 511, "total": 512, "room": 1024}
    assert {**further, "batch": 0} == {"batch": 0, "seq": 64, "past": 0, "total": 64, "room": 1024}
    assert not graph.symbol_ranges.get("batch")
    assert with_scenarios(graph, NAMED, {"past": (511,), "seq": (1, 64)}) is graph


def test_every_likely_size_of_a_free_symbol_counts() -> None:
    graph = with_scenarios(GRAPH, NAMED, {"past": (99, 999)})
    assert [point["total"] for point in graph.scenarios["decode"].at] == [100, 1000]
    assert graph.symbol_ranges["seq"].likely == (1, 128, 1)
    assert [point["room"] for point in graph.scenarios["decode"].at] == [128, 1000]


def test_what_nothing_is_told_of_is_as_large_as_the_rest_demands() -> None:
    columns = Constraint(parse_expr("past + seq - 1 < room"), "node mask")
    graph = with_scenarios(replace(GRAPH, constraints=(columns,)), NAMED, {"past": (511,)})
    assert [each.at[0]["room"] for each in graph.scenarios.values()] == [512, 128]


def test_a_size_with_a_value_in_the_model_is_compared_or_solved() -> None:
    values = {"total": SymbolValue(parse_expr("past + seq"), "node mask")}
    graph = replace(GRAPH, symbols=("seq", "past"), symbol_values=values, constraints=())
    assert scenario_text(with_scenarios(graph, NAMED).scenarios["decode"]) == "seq = 1"
    solved = with_scenarios(graph, scenarios(full="total: 512, seq: 2")).scenarios["full"]
    assert solved.sizes == {"seq": Const(2), "past": Const(510)}
    with pytest.raises(ConfigError, match=r"'odd' cannot occur: total is past \+ 1 in the model, past in the scenario"):
        with_scenarios(graph, scenarios(odd="seq: 1, total: past"))


@pytest.mark.parametrize(
    ("relations", "reason"),
    [
        ("seq: 1, totl: past + 1", "the model has no size 'totl': did you mean total"),
        ("seq: total, total: past + 1, past: seq", "seq -> total -> past -> seq goes round in a circle"),
        ("seq: 9, total: 8", r"the model demands seq <= total \(node mask\)"),
        ("past: 5000", r"past is 5000, the model takes 0..4095 \(node positions\)"),
        ("past: total + 4096", r"no sizes fulfil .*node positions"),
    ],
)
def test_what_cannot_occur_is_refused(relations: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"recipe: wrong: scenario 'wrong' cannot occur: {reason}"):
        with_scenarios(GRAPH, scenarios(wrong=relations))


def test_binding_a_size_keeps_the_scenarios_that_have_it() -> None:
    graph = with_scenarios(GRAPH, NAMED)
    bound = with_scenarios(bind(graph, {"seq": 1}))
    assert {name: scenario_text(each) for name, each in bound.scenarios.items()} == {
        "decode": "total = past + 1",
        "prefill": "past = 0, total = 1",
    }
    longer = with_scenarios(bind(graph, {"seq": 2}))
    assert list(longer.scenarios) == ["prefill"]
    assert longer.symbol_ranges["total"].likely == (2,)
    with pytest.raises(ConfigError, match="seq is 2 in the model, 1 in the scenario"):
        with_scenarios(bind(graph, {"seq": 2}), NAMED, bound={"seq": 2})


def test_sizes_of_a_scenario_follow_from_those_that_are_given() -> None:
    graph = with_scenarios(GRAPH, NAMED)
    sizes = scenario_sizes(graph, "decode", {"past": 2000})
    assert (sizes["seq"], sizes["total"], sizes["room"]) == (1, 2001, 2001)
    with pytest.raises(ScenarioError, match="decode is seq = 1, total = past \\+ 1, and seq is 2"):
        scenario_sizes(graph, "decode", {"seq": 2})
