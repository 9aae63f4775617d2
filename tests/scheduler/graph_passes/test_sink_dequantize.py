"""Dequantisation at the readers: codes cross tensors, movements move codes, what is quantised again vanishes."""

import numpy as np
import pytest
from scheduler.graphs import make_graph

from tilec.ir.evaluate import evaluate
from tilec.ir.graph import Graph
from tilec.ir.text import tensor_text
from tilec.ir.verify.graph import check_graph
from tilec.scheduler.graph_passes.sink_dequantize import sink_dequantize
from tilec.scheduler.refusals import RewrittenGraph

REAL = ("r[i, j] = f32(i32(q[i, j]) - 3) * 0.1", {"i": 3, "j": 5})


def sunk(nodes: list[tuple[str, dict[str, int]]], ttype: str = "u8", more: dict[str, tuple[int, ...]] | None = None):  # type: ignore[no-untyped-def]
    inputs = {"q": (3, 5), **(more or {})}
    graph = make_graph(inputs, [REAL, *nodes], ["y"], ttypes=dict.fromkeys(("q", "p"), ttype))
    after = sink_dequantize(RewrittenGraph(graph)).graph
    assert check_graph(after) == ()
    return graph, after


def result(graph: Graph, low: int) -> np.ndarray:
    known = {}
    for place, port in enumerate(graph.inputs):
        tensor = graph.tensors[port.tensor]
        shape = [int(e.value) for e in tensor.shape]
        dtype = {"u8": np.uint8, "i8": np.int8, "f32": np.float32}[tensor.ttype]
        count = int(np.prod(shape))
        known[port.tensor] = (np.arange(count) * 17 % 256 + low + place).astype(dtype).reshape(shape)
    for node in graph.nodes:
        known[node.name] = evaluate(node.expr, known, ttype=graph.tensors[node.name].ttype)
    return known["y"]


def texts(graph: Graph) -> list[str]:
    return [tensor_text(node.expr) for node in graph.nodes]


def test_readers_dequantise() -> None:
    before, after = sunk([("y[i, j] = r[i, j] + b[i, j]", {"i": 3, "j": 5})], more={"b": (3, 5)})
    assert texts(after) == ["y[i, j] = f32(i32(q[i, j]) - 3) * 0.1 + b[i, j]"]
    assert np.array_equal(result(before, 0), result(after, 0))


def test_movements_move_codes_and_fill_with_the_zero_point() -> None:
    moved = ("t[j, i] = where(j >= 1, r[i, j - 1], 0.0)", {"i": 3, "j": 6})
    before, after = sunk([moved, ("y[j, i] = t[j, i] * 2.0", {"i": 3, "j": 6})])
    assert texts(after) == [
        "t_codes1[j, i] = where(j >= 1, q[i, j - 1], 3)",
        "y[j, i] = f32(i32(t_codes1[j, i]) - 3) * 0.1 * 2.0",
    ]
    assert np.array_equal(result(before, 0), result(after, 0))


@pytest.mark.parametrize("ttype", ["u8", "i8"])
@pytest.mark.parametrize(
    ("scale", "zero", "same"), [("0.1", "3.0", True), ("0.2", "3.0", False), ("0.1", "4.0", False)]
)
def test_what_is_quantised_alike_again_vanishes(ttype: str, scale: str, zero: str, same: bool) -> None:
    quotient = f"r[i, j] / {scale}"
    if ttype == "i8":
        quotient = f"where({quotient} >= -256.0, {quotient}, -256.0)"
    before, after = sunk([(f"y[i, j] = {ttype}(round({quotient}) + {zero})", {"i": 3, "j": 5})], ttype)
    assert (texts(after) == ["y[i, j] = q[i, j]"]) == same
    low = 0 if ttype == "u8" else -128
    assert np.array_equal(result(before, low), result(after, low))


def test_another_type_is_quantised_again() -> None:
    before, after = sunk([("y[i, j] = i8(round(r[i, j] / 0.1) + 3.0)", {"i": 3, "j": 5})])
    assert texts(after) == ["y[i, j] = i8(round(f32(i32(q[i, j]) - 3) * 0.1 / 0.1) + 3.0)"]
    assert np.array_equal(result(before, 0), result(after, 0))


def test_tensors_of_two_scales_are_joined_as_real_numbers() -> None:
    nodes = [
        ("r2[i, j] = f32(i32(p[i, j])) * 0.3", {"i": 3, "j": 5}),
        ("y[i, j] = where(i < 3, r[i, j], r2[i - 3, j])", {"i": 6, "j": 5}),
    ]
    before, after = sunk(nodes, more={"p": (3, 5)})
    assert len(after.nodes) == 1
    assert np.array_equal(result(before, 0), result(after, 0))


def test_products_keep_real_factors_that_have_no_integer_partner() -> None:
    product = ("y[i, n] = sum(j, r[i, j] * b[j, n])", {"i": 3, "n": 2, "j": 5})
    before, after = sunk([product], more={"b": (5, 2)})
    assert after.nodes == before.nodes
