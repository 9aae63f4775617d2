"""Bounds as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json

from report.bounds.subjects import small, square

from tilec.analysis.bounds.rows import at_capacity, at_levels
from tilec.bounds.levels import NOT_JOINT, level_capacities
from tilec.report.bounds.forms import bounds_csv, bounds_to_json, meanings
from tilec.spec.resolve import resolve_device


def test_csv_holds_whole_curves_without_capacities() -> None:
    subject = small()
    rows = list(csv.DictReader(io.StringIO(bounds_csv([subject], []))))
    assert len(rows) == sum(len(slope.points) for slope in subject.slopes)
    assert rows[0] == {
        "name": "C", "count": "3", "sizes": "m=6 n=4 k=5", "mapspace": "oro",
        "traffic_bytes": str(subject.slopes[0].points[0].traffic_bytes),
        "accesses_words": str(subject.slopes[0].points[0].accesses),
        "buffer_bytes": "7", "mapping": str(subject.slopes[0].points[0].mapping),
    }  # fmt: skip


def test_csv_holds_a_line_for_every_capacity_and_mapspace() -> None:
    rows = list(csv.DictReader(io.StringIO(bounds_csv([square(), small()], [at_capacity("2B"), at_capacity("1MiB")]))))
    assert [row["mapspace"] for row in rows] == ["oro", "oro+", "lb"] * 4
    assert [row["capacity_bytes"] for row in rows[:6:3]] == ["2", str(2**20)]
    assert (rows[0]["traffic_bytes"], rows[0]["because"]) == ("", "nothing fits, 12 bytes are the least")


def test_json_has_integers_and_says_what_each_mapspace_holds() -> None:
    subject = square()
    told = json.loads(json.dumps(bounds_to_json([subject], [at_capacity("40MiB")])))
    assert set(told["mapspaces"]) == {"oro", "oro+", "lb"}
    assert "levels" not in told
    (only,) = told["subjects"]
    assert only["compulsory_bytes"] == 192 * 2**20
    assert only["largest_useful_buffer_bytes"]["oro"] == 67_141_632
    (at,) = only["bounds"]
    assert at["capacity_bytes"] == 40 * 2**20
    assert at["oro"]["traffic_bytes"] == 256 * 2**20
    assert at["oro"]["mapping"] == "loops n:2 m:4096, tile n:2048 k:4096"
    assert at["lb"] == {"because": "compulsory", "traffic_bytes": 192 * 2**20}
    curves = bounds_to_json([subject], [])["subjects"][0]["curves"]
    assert curves["oro"][-1]["buffer_bytes"] == 67_141_632


def test_levels_are_said_not_to_go_together() -> None:
    told = bounds_to_json([small()], at_levels(level_capacities(resolve_device("a100"))))
    assert told["levels"] == NOT_JOINT
    assert [at["level"] for at in told["subjects"][0]["bounds"]] == ["l2", "smem", "reg"]
    assert told["subjects"][0]["bounds"][1]["instances"] == 108


def test_meanings_tell_apart_what_is_proved() -> None:
    told = meanings([small()])
    assert "perfect factors" in told["oro"]
    assert "no mapping of any kind" in told["lb"]
