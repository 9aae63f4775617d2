"""Batches: symbols along which nothing is reduced and nothing is read beside an item (B07)."""

from dataclasses import replace

import pytest

from tests.scheduler.graphs import make_graph
from tests.scheduler.models import attention
from tilec.ir.sizes import SymbolRange
from tilec.scheduler import schedule
from tilec.scheduler.analysis.independent_symbols import independent_symbols, with_usual_items
from tilec.spec.resolve import resolve_device


@pytest.mark.feature("B07")
def test_a_batch_is_told_from_a_sequence_and_from_pixels() -> None:
    assert independent_symbols(attention("batch", "seq")) == ("batch",)
    window = "0 <= w+s-1 and w+s-1 < width"
    blur = f"y[i, w] = sum(s, where({window}, x[i, w+s-1], 0.0))"
    graph = make_graph({"x": ("n", "width")}, [(blur, {"i": "n", "w": "width", "s": 3})], ["y"], symbols=["n", "width"])
    assert independent_symbols(graph) == ("n",)


@pytest.mark.feature("B07")
def test_what_is_known_of_a_batch_counts() -> None:
    graph = attention("batch", "seq")
    assert with_usual_items(graph, graph).symbol_ranges == {"batch": SymbolRange(likely=(8,))}
    known = replace(graph, symbol_ranges={"batch": SymbolRange(1, 4), "seq": SymbolRange(1, 512)})
    assert with_usual_items(known, known).symbol_ranges["batch"] == SymbolRange(1, 4, likely=(4,))
    likely = replace(graph, symbol_ranges={"batch": SymbolRange(1, 64, likely=(32, 1))})
    assert with_usual_items(likely, likely) is likely


@pytest.mark.feature("B07")
def test_a_batch_flattened_with_windows_is_one() -> None:
    extents = {"m": "b*4", "i": "b", "j": 4, "k": 3}
    nodes = [("y[m, k] = x[m // 4, m % 4 // 2, m % 2, k] * 2", extents), ("z[i, j, k] = y[i*4 + j, k] + 1", extents)]
    graph = make_graph({"x": ("b", 2, 2, 3)}, nodes, ["z"], symbols=["b"])
    assert independent_symbols(graph) == ()
    plan = schedule(graph, resolve_device("host"))
    assert plan.symbol_ranges["b"].likely == (8,)
