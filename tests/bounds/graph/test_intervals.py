from __future__ import annotations

import pytest

from bounds.graphs import Text, attention, graph, mlp, softmax
from tilec.bounds.graph import intervals
from tilec.bounds.graph.intervals import NodeInterval, Surroundings, intervals_from
from tilec.ir.graph import Graph

F32 = 4


def from_start(found: Graph, first: int = 0) -> list[NodeInterval]:
    return list(intervals_from(first, Surroundings(found, found.nodes)))


def test_an_epilogue_spares_the_result_of_its_contraction_and_adds_what_it_reads() -> None:
    product, bias, relu, both = from_start(mlp(32, 16, 64, 8))
    # Alone the curve says everything. With a bias the sum is written in place of the product.
    assert (product.side, bias.side, relu.side) == (0, F32 * 64, F32 * 64)
    assert [reader.node.name for reader in relu.readers] == ["h"]
    assert relu.chain is None
    # Chained, what is between costs nothing; the curve of a chain has neither.
    assert both.side == F32 * 64
    assert both.chain is not None
    assert [product.name for product in both.chain.operators] == ["h", "y"]


def test_a_prologue_replaces_the_operand_that_it_makes() -> None:
    *_, fused = from_start(mlp(32, 16, 64, 8), first=1)
    # bias + relu + product: reads h and b where the curve reads r.
    assert fused.side == F32 * 64
    wide = [("a[m, n] = p[m, n] + q[m, n]", {"m": 8, "n": 8}),
            ("y[m, n] = sum(k, a[m, k] * w[k, n])", {"m": 8, "n": 8, "k": 8})]  # fmt: skip
    # Two operands of full size would come in again and again: that is cut.
    assert [run.end for run in from_start(graph({"p": (8, 8), "q": (8, 8), "w": (8, 8)}, wide, ["y"]))] == [1]


def test_a_prologue_spares_only_what_its_contraction_reads() -> None:
    nodes: list[Text] = [
        ("t[i, j] = x[i]", {"i": 6, "j": 5}),
        ("y[i, h] = sum(r, t[i, h*2 + r] * w[i, r])", {"i": 6, "h": 3, "r": 1}),
    ]
    found = graph({"x": (6,), "w": (6, 1)}, nodes, ["y"])
    # Of five columns three are read.
    assert from_start(found)[-1].side == F32 * (6 - 18)


def test_nodes_without_contraction_move_what_enters_and_leaves() -> None:
    nodes: list[Text] = [("a[i] = x[i] + b[0]", {"i": 16}), ("c[i] = a[i] * x[i]", {"i": 16}),
                         ("y[i] = c[i] + a[i]", {"i": 16})]  # fmt: skip
    found = graph({"x": (16,), "b": (1,)}, nodes, ["y"])
    assert [run.side for run in from_start(found)] == [F32 * (16 + 1 + 16), F32 * (16 + 1 + 32), F32 * (16 + 1 + 16)]
    assert all(run.least == 0 for run in from_start(found))


def test_reductions_need_room_for_what_they_reduce_at_once() -> None:
    nodes = softmax("y", "x", {"m": 8, "n": 100})
    found = from_start(graph({"x": (8, 100)}, nodes, ["y"]))
    assert [run.least for run in found] == [0, F32 * 100, F32 * 100, F32 * 100]
    assert found[-1].side == F32 * 2 * 800
    # Along rows, then along columns: no rows fit both.
    both: list[Text] = [("u[m] = sum(r, x[m, r])", {"m": 8, "r": 100}), ("v[o] = sum(r, u[r + o])", {"o": 1, "r": 8})]
    assert [run.end for run in from_start(graph({"x": (8, 100)}, both, ["v"]))] == [1]


def test_softmax_between_two_products() -> None:
    found = from_start(attention(batch=2, heads=3, rows=8, width=4))
    chains = {tuple(r.node.name for r in run.readers): run for run in found}
    assert list(chains) == [("p",), ("p", "s"), ("p", "s", "c"), ("p", "s", "c", "y")]
    assert chains["p", "s", "c", "y"].side == 0
    # Behind the second product the rows of its result are needed whole.
    assert [run.rows for run in found if len(run.readers) == 2] == [False, True, True, True, True]


def test_a_tensor_that_is_read_behind_a_later_product_goes_through_the_backing_store() -> None:
    sizes = {"m": 8, "n": 8, "k": 8}
    nodes: list[Text] = [
        ("h[m, n] = sum(k, x[m, k] * v[k, n])", sizes),
        ("r[m, n] = maximum(h[m, n], 0.0)", {"m": 8, "n": 8}),
        ("g[m, n] = sum(k, r[m, k] * w[k, n])", sizes),
        ("y[m, n] = g[m, n] + r[m, n]", {"m": 8, "n": 8}),
    ]
    found = from_start(graph({"x": (8, 8), "v": (8, 8), "w": (8, 8)}, nodes, ["y"]))
    # Cut behind g, r is written for the sum; with the sum it is written and read.
    assert [run.side for run in found] == [0, 0, F32 * 64, F32 * 128]


def test_weights_that_are_made_on_the_way_come_from_what_they_are_made_of() -> None:
    sizes = {"m": 8, "n": 8, "k": 8}
    nodes: list[Text] = [
        ("h[m, n] = sum(k, x[m, k] * v[k, n])", sizes),
        ("u[m, n] = f32(w[m, n])", {"m": 8, "n": 8}),
        ("y[m, n] = sum(k, h[m, k] * u[k, n])", sizes),
    ]
    found = from_start(graph({"x": (8, 8), "v": (8, 8), "w": (8, 8)}, nodes, ["y"], {"w": "i8"}))
    assert [run.side for run in found] == [0, 64 + F32 * 64, 64 - F32 * 64]


def test_convolutions_take_what_follows_but_no_reductions() -> None:
    nodes: list[Text] = [
        ("c[o, h] = sum(i, r, x[i, h + r] * w[o, i, r])", {"o": 4, "h": 6, "i": 3, "r": 3}),
        ("a[o, h] = maximum(c[o, h], 0.0)", {"o": 4, "h": 6}),
        ("y[o] = sum(r, a[o, r])", {"o": 4, "r": 6}),
    ]
    found = from_start(graph({"x": (3, 8), "w": (4, 3, 3)}, nodes, ["y"]))
    assert [(run.end, run.side) for run in found] == [(1, 0), (2, 0)]


def test_runs_are_not_longer_than_they_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    found = attention()
    monkeypatch.setattr(intervals, "MAX_NODES", 2)
    assert [run.end for run in from_start(found)] == [1, 2]
    monkeypatch.undo()
    monkeypatch.setattr(intervals, "MAX_CONTRACTIONS", 1)
    assert {len(run.readers) for run in from_start(found)} == {1}


def test_a_node_reads_no_more_than_lies_in_the_box_around_its_reads() -> None:
    tables = graph({"x": (4, 8), "c": (64, 4), "p": (3,)}, [
        ("y[i, j] = where(j < 4, x[i, j] * c[i, j % 4], x[i, (j + 4) % 8] * c[i + 2, j % 4])", {"i": 4, "j": 8}),
        ("z[i, j] = y[p[i], j] + c[i * 31, j]", {"i": 3, "j": 2}),
    ], ["z"], {"p": "i32"})  # fmt: skip
    around = Surroundings(tables, tables.nodes)
    first, second = tables.nodes
    assert around.reads(first) == {"x": 4 * 4 * 8, "c": 4 * 6 * 4}
    assert around.reads(second) == {"y": 4 * 3 * 2, "p": 4 * 3, "c": 4 * 3 * 2}
