"""Batches: symbols along which nothing is reduced and nothing is read beside an item (B07)."""

from dataclasses import replace

import pytest

from tests.scheduler.graphs import make_graph
from tests.scheduler.models import attention
from tilec.ir.sizes import SymbolRange
from tilec.scheduler.analysis.independent_symbols import independent_symbols, with_usual_items


@pytest.mark.feature("B07")
def test_a_batch_is_told_from_a_sequence_and_from_pixels() -> None:
    assert independent_symbols(attention("batch", "seq")) == ("batch",)
    window = "0 <= w+s-1 and w+s-1 < width"
    blur = f"y[n, w] = sum(s, where({window}, x[n, w+s-1], 0.0))"
    graph = make_graph({"x": ("n", "width")}, [(blur, {"n": "n", "w": "width", "s": 3})], ["y"], symbols=["n", "width"])
    assert independent_symbols(graph) == ("n",)


@pytest.mark.feature("B07")
def test_what_is_known_of_a_batch_counts() -> None:
    graph = attention("batch", "seq")
    assert with_usual_items(graph).symbol_ranges == {"batch": SymbolRange(likely=(8,))}
    known = replace(graph, symbol_ranges={"batch": SymbolRange(1, 4), "seq": SymbolRange(1, 512)})
    assert with_usual_items(known).symbol_ranges["batch"] == SymbolRange(1, 4, likely=(4,))
    likely = replace(graph, symbol_ranges={"batch": SymbolRange(1, 64, likely=(32, 1))})
    assert with_usual_items(likely) is likely
