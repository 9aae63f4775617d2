"""pack: constants stored in the order of the loop that reads them, in panels."""

from dataclasses import replace

import pytest
from scheduler.graphs import assert_same, make_graph

from tilec.ir.bind import simplify_tensor
from tilec.ir.graph import Graph, Node
from tilec.ir.text import tensor_text
from tilec.scheduler.analysis.vector_iterator import vector_of
from tilec.scheduler.building.pack_weights import pack_weights, unpacked
from tilec.spec.machine_costs import CpuCosts


def repacked(graph: Graph, width: int, made: dict[str, Node] | None = None) -> tuple[list[str], str]:
    """Texts of the prepared nodes and of the rewritten last node, which still computes the same."""
    made = {} if made is None else made
    constants = frozenset(graph.constants)
    last = graph.nodes[-1]
    vector = vector_of(last.expr, graph, constants, CpuCosts())
    expr, with_tensors = pack_weights(last.expr, vector, width, graph, constants, made)
    nodes = (*graph.nodes[:-1], *made.values(), replace(last, expr=expr))
    assert_same(graph, replace(with_tensors, nodes=nodes))
    packs = {node.name: node.expr for node in made.values()}
    assert simplify_tensor(unpacked(expr, packs)) == simplify_tensor(last.expr)
    return [tensor_text(node.expr) for node in made.values()], tensor_text(expr)


@pytest.mark.feature("L10", "B25")
def test_a_convolution_weight_becomes_panels() -> None:
    graph = make_graph(
        {"x": (5, 5, 3)},
        [
            (
                "y[h, w, o] = sum(r, s, c, x[h + r, w + s, c] * u[o, c, r, s])",
                {"h": 3, "w": 3, "o": 8, "r": 3, "s": 3, "c": 3},
            )
        ],
        ["y"],
        {"u": (8, 3, 3, 3)},
    )
    made, text = repacked(graph, 4)
    assert made == ["u_packed[o_panel, r, s, c, o] = u[o + o_panel * 4, c, r, s]"]
    assert text.endswith("* u_packed[o // 4, r, s, c, o % 4])")


def test_a_width_that_does_not_divide_keeps_one_panel() -> None:
    e = {"m": 4, "n": 10, "k": 3}
    graph = make_graph({"x": (4, 3)}, [("y[m, n] = sum(k, x[m, k] * u[n, k])", e)], ["y"], {"u": (10, 3)})
    made, text = repacked(graph, 4)
    assert made == ["u_packed[k, n] = u[n, k]"]
    assert "u_packed[k, n]" in text


def test_what_lies_right_already_is_left_alone() -> None:
    e = {"m": 4, "n": 10, "k": 3}
    graph = make_graph({"x": (4, 3)}, [("y[m, n] = sum(k, x[m, k] * u[k, n])", e)], ["y"], {"u": (3, 10)})
    assert repacked(graph, 4) == ([], tensor_text(graph.nodes[0].expr))


def test_split_reduce_iterators_and_depthwise_weights() -> None:
    e = {"s": 4, "n": 8, "h": 2, "d": 3}
    graph = make_graph({"x": (2, 4, 3)}, [("y[s, n] = sum(h, d, x[h, s, d] * u[h*3 + d, n])", e)], ["y"], {"u": (6, 8)})
    assert repacked(graph, 4)[0] == ["u_packed[n_panel, h, d, n] = u[d + h * 3, n + n_panel * 4]"]
    depthwise = make_graph({"x": (6, 8)}, [("y[s, n] = sum(h, x[s + h, n] * u[n, h])", e)], ["y"], {"u": (8, 2)})
    assert repacked(depthwise, 8)[0] == ["u_packed[h, n] = u[n, h]"]


def test_readers_with_the_same_order_share_a_packed_tensor() -> None:
    e = {"m": 4, "n": 8, "k": 3}
    graph = make_graph({"x": (4, 3)}, [("y[m, n] = sum(k, x[m, k] * u[n, k])", e)], ["y"], {"u": (8, 3)})
    made: dict[str, Node] = {}
    repacked(graph, 4, made)
    vector = vector_of(graph.nodes[0].expr, graph, frozenset({"u"}), CpuCosts())
    pack_weights(graph.nodes[0].expr, vector, 4, graph, frozenset({"u"}), made)
    assert len(made) == 1


def test_readers_of_different_parts_do_not_share() -> None:
    made: dict[str, Node] = {}
    for columns in (8, 4):
        e = {"m": 4, "n": columns, "k": 3}
        graph = make_graph({"x": (4, 3)}, [("y[m, n] = sum(k, x[m, k] * u[n, k])", e)], ["y"], {"u": (8, 3)})
        vector = vector_of(graph.nodes[0].expr, graph, frozenset({"u"}), CpuCosts())
        pack_weights(graph.nodes[0].expr, vector, 3, graph, frozenset({"u"}), made)
    assert len(made) == 2


def test_a_padded_constant_is_packed_with_its_padding() -> None:
    graph = make_graph(
        {"x": (5, 3)},
        [("y[m, n] = sum(k, x[m, k] * where(k >= 1, w[n, k - 1], 0.0))", {"m": 5, "n": 8, "k": 3})],
        ["y"],
        {"w": (8, 2)},
    )
    made, _ = repacked(graph, 4)
    assert made
    assert all("where(k - 1 >= 0" in text for text in made)
