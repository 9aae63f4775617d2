"""Extents of windows that are inputs' sizes are taken for small ones."""

from dataclasses import replace

import pytest

from tests.scheduler.graphs import make_graph
from tests.scheduler.models import attention
from tilec.ir.graph import Graph
from tilec.ir.sizes import SymbolRange
from tilec.scheduler import schedule
from tilec.scheduler.analysis.window_symbols import window_symbols, with_usual_windows
from tilec.spec.resolve import resolve_device

SYMBOLS = ("width", "window", "channels")


def convolution(index: str, extent: str, guarded: bool = False) -> Graph:
    read = f"x[c, {index}]"
    if guarded:
        read = f"where({index} >= 0 and {index} < width, {read}, 0.0)"
    e = {"i": extent, "c": "channels", "s": "window"}
    inputs = {"x": ("channels", "width"), "w": ("channels", "window")}
    return make_graph(inputs, [(f"y[i] = sum(c, s, {read} * w[c, s])", e)], ["y"], symbols=SYMBOLS)


@pytest.mark.feature("B07")
@pytest.mark.parametrize(
    "graph",
    [
        convolution("i + s", "width - window + 1"),
        convolution("i*2 + s*3 - 1", "width", guarded=True),
        convolution("(i + 1 - s) // 2", "width", guarded=True),
    ],
)
def test_what_slides_over_a_tensor_is_a_window(graph: Graph) -> None:
    assert window_symbols(graph) == ("window",)
    assert with_usual_windows(graph).symbol_ranges == {"window": SymbolRange(likely=(3,))}


@pytest.mark.feature("B07")
def test_what_is_reduced_by_itself_is_no_window() -> None:
    assert window_symbols(attention("batch", "seq")) == ()


@pytest.mark.feature("B07")
def test_what_is_known_of_a_window_counts() -> None:
    graph = convolution("i + s", "width - window + 1")
    known = replace(graph, symbol_ranges={"window": SymbolRange(5, 9)})
    assert with_usual_windows(known).symbol_ranges["window"] == SymbolRange(5, 9, likely=(5,))
    likely = replace(graph, symbol_ranges={"window": SymbolRange(likely=(7,))})
    assert with_usual_windows(likely) is likely


@pytest.mark.feature("B07")
def test_a_plan_is_made_for_small_windows() -> None:
    graph = convolution("i + s", "width - window + 1")
    assert schedule(graph, resolve_device("avx2")).symbol_ranges["window"].likely == (3,)
