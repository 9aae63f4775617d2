"""Rows of a sweep as cells, CSV and JSON."""

import csv
import io

import pytest
from report.plans import group, layers, plan

from tilec.analysis.ratios import Ratio
from tilec.analysis.statistics import statistics
from tilec.ir.plan import Bound
from tilec.ir.text import parse_expr
from tilec.report.sweep import Row, pattern_lines, sweep_cells, sweep_csv, sweep_to_json

FOUND = statistics(plan(*layers()))
ROWS = (
    Row("net", "toy", "none", {"batch": 1}, FOUND),
    Row("other", "toy", "register", {"seq": 64}, None, "it has, as such, no plan"),
)

MODELS = {"net": layers(), "other": (group("h r", {"h->r": "reg"}), group("g top y", {"g->top": "smem"}))}
"""Groups of two networks; `h r` is a pattern of both."""


def test_cells_have_units_and_no_column_for_sizes_that_there_are_not():
    head, first, second = sweep_cells(ROWS)
    assert head[:5] == ["model", "sizes", "device", "fusion", "groups"]
    told = dict(zip(head, first, strict=True))
    assert (told["sizes"], told["groups"], told["patterns"], told["largest"]) == ("batch=1", "3", "2", "2")
    assert (told["intermediate"], told["traffic"], told["predicted"]) == ("10.0 KiB", "11.5 KiB", "-")
    assert second == ["other", "seq=64", "toy", "register", "no plan"]
    assert sweep_cells([Row("net", "toy", "none", {}, FOUND)])[0][:2] == ["model", "device"]


def test_csv_has_a_column_for_every_size_and_plain_numbers():
    first, second = csv.DictReader(io.StringIO(sweep_csv(ROWS)))
    assert (first["batch"], first["seq"], first["traffic_bytes"], first["error"]) == ("1", "", "11776", "")
    assert (first["fused_patterns"], first["transactions"], first["predicted_picoseconds"]) == ("2", "0", "")
    assert (second["batch"], second["seq"], second["groups"]) == ("", "64", "")
    assert second["error"] == "it has, as such, no plan"


def test_json_holds_the_levels_too():
    first, second = sweep_to_json(ROWS)["rows"]
    assert first["plan"]["levels"]["smem"]["written_bytes"] == 1536
    assert (first["sizes"], first["fusion"]) == ({"batch": 1}, "none")
    assert "error" not in first
    assert second == {
        "model": "other",
        "device": "toy",
        "fusion": "register",
        "sizes": {"seq": 64},
        "plan": None,
        "error": "it has, as such, no plan",
    }


@pytest.mark.feature("W48")
def test_patterns_of_several_models_count_once():
    rows = [Row(model, "toy", "full", {}, statistics(plan(*groups))) for model, groups in MODELS.items()]
    assert sweep_to_json(rows)["patterns"] == [
        {"device": "toy", "fusion": "full", "patterns": 3, "reducing": 1, "largest": 3}
    ]
    assert pattern_lines(rows) == [
        "patterns, toy, full: 3 different, 1 with two or more reductions, the largest has 3 nodes"
    ]
    assert pattern_lines(rows[:1]) == [], "its row tells them"


def test_open_sizes_are_text():
    first, *rest = layers()
    unbound = statistics(plan(first, *rest, unfused={"smem": parse_expr("s * 8")}))
    (row,) = sweep_to_json([Row("net", "toy", "none", {}, unbound)])["rows"]
    assert row["plan"]["unfused_traffic_bytes"] == "s * 8"


def test_bounds_have_columns_where_they_are_asked_for():
    row = Row("net", "toy", "full", {}, FOUND, ratio=Ratio("smem", 11776, Bound(4096, 8192)))
    head, cells = sweep_cells([row])
    assert head[-3:] == ["attainable", "at least", "ratio"]
    assert cells[-3:] == ["8.0 KiB", "4.0 KiB", "1.44x"]
    assert "ratio" not in sweep_cells(ROWS)[0]
    (told,) = csv.DictReader(io.StringIO(sweep_csv([row])))
    assert (told["attainable_bytes"], told["least_bytes"], told["ratio"]) == ("8192", "4096", "1.44x")
