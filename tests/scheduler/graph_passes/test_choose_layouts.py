"""layout: output channels innermost where weights are packed, everything else follows; interfaces keep their order."""

import pytest
from scheduler.graphs import assert_same, make_graph
from scheduler.models import attention, convolutions

from tilec.ir.graph import Graph
from tilec.ir.text import tensor_text
from tilec.scheduler.graph_passes.choose_layouts import choose_layouts
from tilec.scheduler.refusals import RewrittenGraph


def orders(graph: Graph) -> dict[str, str]:
    after = choose_layouts(RewrittenGraph(graph)).graph
    assert_same(graph, after)
    return {node.name: "".join(node.expr.spatial) for node in after.nodes}


@pytest.mark.feature("L10")
def test_channels_become_innermost_through_a_network() -> None:
    found = orders(convolutions())
    assert found["a"] == "nhwo"
    assert found["a_relu"] == "nhwo"
    assert found["d"] == "nhwo", "a depthwise convolution inherits"
    assert found["y"] == "nhwo"
    assert found["pooled"] == "no"
    assert found["logits"] == "nm"


def test_reduce_iterators_follow_the_storage_of_the_operand() -> None:
    after = choose_layouts(RewrittenGraph(convolutions())).graph
    reduce = {node.name: node.expr.reduce for node in after.nodes}
    assert reduce["a"] == ("c", "r", "s"), "the model's input keeps its order"
    graph = make_graph(
        {"x": (1, 3, 5, 5)},
        [
            ("a[n, o, h, w] = sum(c, x[n, c, h, w] * v[o, c])", {"n": 1, "o": 4, "h": 5, "w": 5, "c": 3}),
            (
                "y[n, o, h, w] = sum(c, r, s, a[n, c, h + r, w + s] * u[o, c, r, s])",
                {"n": 1, "o": 4, "h": 3, "w": 3, "c": 4, "r": 3, "s": 3},
            ),
        ],
        ["y"],
        {"v": (4, 3), "u": (4, 4, 3, 3)},
    )
    after = choose_layouts(RewrittenGraph(graph)).graph
    assert after.nodes[-1].expr.reduce == ("r", "s", "c")


def test_outputs_keep_their_order() -> None:
    e = {"n": 1, "o": 4, "h": 3, "c": 2}
    graph = make_graph({"x": (1, 2, 3)}, [("y[n, o, h] = sum(c, x[n, c, h] * w[o, c])", e)], ["y"], {"w": (4, 2)})
    assert orders(graph) == {"y": "noh"}


def test_activations_keep_the_order_that_their_product_can_use() -> None:
    found = orders(attention())
    assert found["score"] == "bhst"
    assert found["mix"] == "bhsd"
    assert found["q_product"] == "bsn"


def test_iterators_of_extent_one_stand_in_front() -> None:
    e = {"i": 3, "u": 1, "k": 4}
    graph = make_graph({"x": (3, 4)}, [("a[i, u] = sum(k, x[i, k])", e), ("y[i, u] = a[i, u] + 1.0", e)], ["y"])
    assert orders(graph)["a"] == "ui"


def test_readers_follow_merged_dimensions() -> None:
    e = {"h": 2, "s": 3, "d": 4, "n": 8, "k": 5}
    graph = make_graph(
        {"x": (3, 5)},
        [
            ("p[s, n] = sum(k, x[s, k] * w[k, n])", e),
            ("y[d, h, s] = p[s, h*4 + d] + 1.0", e),
            ("z[h] = sum(s, d, y[d, h, s])", e),
        ],
        ["z"],
        {"w": (5, 8)},
    )
    assert orders(graph)["y"] == "shd"


def test_reads_that_data_choose_are_followed_where_no_other_is() -> None:
    e = {"i": 3, "d": 4}
    graph = make_graph(
        {"table": (9, 4), "index": (3,)},
        [("a[i, d] = table[index[i], d]", e), ("y[i, d] = a[i, d] + 1.0", e)],
        ["y"],
        ttypes={"index": "i64"},
    )
    assert orders(graph)["a"] == "id"
    assert tensor_text(choose_layouts(RewrittenGraph(graph)).graph.nodes[0].expr) == "a[i, d] = table[index[i], d]"
    e = {"n": 1, "o": 4, "h": 3, "w": 5, "c": 2}
    spatial = {i: n for i, n in e.items() if i != "c"}
    graph = make_graph(
        {"x": (1, 2, 3, 5), "index": (3,), "m": (1, 4, 3, 5)},
        [
            ("a[n, o, h, w] = sum(c, x[n, c, h, w] * v[o, c])", e),
            ("b[n, o, h, w] = a[n, o, index[h], w] * 2.0", spatial),
            ("b2[n, o, h, w] = a[n, o, index[h], w] * m[n, o, h, w]", spatial),
            ("y[n, o, h, w] = b[n, o, h, w] + b2[n, o, h, w]", spatial),
        ],
        ["y"],
        {"v": (4, 2)},
        ttypes={"index": "i64"},
    )
    found = orders(graph)
    assert found["b"] == "nhwo", "a resized map keeps its channels innermost"
    assert found["b2"] == "nohw"
