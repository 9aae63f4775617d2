"""Chains, workloads and graphs as subjects."""

from __future__ import annotations

import pytest
from bounds.graphs import attention, mlp

from tilec.analysis.bounds.rows import at_capacity, rows_of
from tilec.analysis.bounds.units import peak
from tilec.analysis.bounds.whole import of_chain, of_graph, of_workload
from tilec.bounds.einsum.oro import oro
from tilec.bounds.graph.best_known import graph_curve
from tilec.bounds.graph.chains import chains
from tilec.report.bounds.forms import bounds_csv, bounds_to_json
from tilec.report.bounds.panels import panels
from tilec.report.bounds.table import heading
from tilec.spec.bounds import BoundsRecipe
from tilec.spec.located import parse_yaml, validate
from tilec.spec.resolve import resolve_device

PAIR = """
kind: bounds
convention: two-byte words
workload:
  - chain:
      - {name: fc1, m: 256, k: 32, n: 128}
      - {name: fc2, m: 256, k: 128, n: 32}
    bits: 16
  - {name: one, einsum: "y[m,n] = sum(k, a[m,k] * b[k,n])", dims: {m: 16, n: 8, k: 4}, bits: 8}
capacities: [1KiB, 16KB]
measured: [{name: chip, capacity: 16KB, traffic: 100KB}]
"""
AREA = "area: {die_mm2: 0.1, mac_um2: 300, byte_um2: 2.5, clock_hz: 1e9, bandwidth: 10GB/s}\n"


def recipe(text: str) -> BoundsRecipe:
    return validate(BoundsRecipe, parse_yaml(text, "pair.yaml"))


def test_a_chain_counts_each_weight_once_per_batch() -> None:
    (found,) = chains(attention(batch=2, heads=3, rows=8, width=4))
    subject = of_chain(found, ["oro", "oro+"])
    assert [slope.name for slope in subject.slopes] == ["oro fused", "oro+ fused"]
    size = 2 * 8 * 12
    assert subject.compulsory == 4 * (4 * size + 2 * 12 * 12)
    assert subject.operations == 2 * (2 * size * 12 + 2 * 2 * 3 * 8 * 8 * 4)
    assert subject.width == 32
    assert subject.text == "16x12x12 > 16x4x8 (3 heads) > 16x8x4 (3 heads) > 16x12x12"
    assert subject.lower(1).traffic_bytes == subject.slopes[0].points[-1].traffic_bytes == subject.compulsory
    assert "p (" in str(subject.slopes[0].points[-1].mapping)


def test_a_workload_has_curves_with_and_without_fusion() -> None:
    subject = of_workload("pair", recipe(PAIR), ["oro"])
    assert [slope.name for slope in subject.slopes] == ["oro", "oro fused"]
    fc = 2 * (256 * 32 + 2 * 32 * 128 + 256 * 32)
    assert subject.compulsory == fc + 16 * 4 + 4 * 8 + 16 * 8
    assert subject.slopes[1].points[-1].traffic_bytes == subject.compulsory
    assert subject.slopes[0].points[-1].traffic_bytes == subject.compulsory + 2 * 2 * 256 * 128
    # The product alone has the theorem, the chain has none.
    assert (subject.lower(4).because, subject.lower(10_000).because) == ("matrix product", "compulsory")
    assert subject.lower(4).traffic_bytes > subject.compulsory
    assert heading(subject)[2] == "  convention: two-byte words"
    assert subject.width == 16
    measured = [row.traffic for row in rows_of(subject, [at_capacity("16KB")]) if row.mapspace == "measured"]
    assert measured == [100_000]
    assert bounds_to_json([subject], [at_capacity("16KB")])["subjects"][0]["bounds"][0]["measured_bytes"] == {
        "chip": 100_000
    }
    assert panels([subject], None)[0].points == ((16_000.0, 100_000.0),)


def test_without_fusion_there_is_one_curve() -> None:
    alone = of_workload("pair", recipe(PAIR + "fusion: none\n"), ["oro", "oro+"])
    assert [slope.name for slope in alone.slopes] == ["oro", "oro+"]
    assert alone.mountains == {}


@pytest.mark.feature("O28")
def test_the_area_mountain_is_drawn_where_a_die_is_given() -> None:
    subject = of_workload("pair", recipe(PAIR + AREA), ["oro"])
    assert any(note.startswith("oro, fastest designs of the die: fused ") for note in subject.notes)
    mountain = panels([subject], None)[-1]
    assert (mountain.title, mountain.linear) == ("Area mountain", True)
    assert [line.label for line in mountain.lines] == ["oro", "oro fused"]
    for line in mountain.lines:
        shares = [share for share, _ in line.pairs]
        assert shares == sorted(shares)
        assert 0 < max(shares) <= 1
    tops = [max(y for _, y in line.pairs) for line in mountain.lines]
    assert tops[1] >= tops[0] > 0
    assert len(panels([of_workload("pair", recipe(PAIR), ["oro"])], None)) == 2


def test_a_graph_has_the_best_known_and_no_words() -> None:
    found = mlp()
    subject = of_graph(found.name, len(found.nodes), graph_curve(found, oro, ragged=False), 32)
    assert heading(subject)[0] == "g: the whole graph of 4 nodes"
    assert [slope.name for slope in subject.slopes] == ["best known"]
    line = bounds_csv([subject], []).splitlines()[-1]
    assert line.startswith(f"g,1,,best known,{subject.compulsory},,")
    # Wide elements take units for wide elements.
    assert peak(resolve_device("a100"), subject) == 19.5e12
    assert "no bound" in bounds_to_json([subject], [])["mapspaces"]["best known"]
