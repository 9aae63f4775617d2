"""The diff of graphs: nodes matched by what they compute."""

from dataclasses import replace

import pytest
from report.plans import TEXTS, node

from tilec.analysis.diff_graphs import diff_graphs
from tilec.analysis.limits import exceeded, parse_limits
from tilec.ir.expr import Const, rename_tensors
from tilec.ir.graph import Graph, Inline, Placement, Port, Tensor, WeightRef
from tilec.ir.text import parse_tensor
from tilec.report.diff_json import diff_to_json
from tilec.report.diff_text import diff_text

SHAPES = {"x": (64, 16), "w": (16, 32), "u": (32, 8), "h": (64, 32), "r": (64, 32), "g": (64, 8), "top": (64,)}


def network(names: str = "h r g top y") -> Graph:
    return Graph(
        name="net",
        symbols=(),
        inputs=(Port("input", "x"),),
        outputs=(Port("output", names.split()[-1]),),
        tensors={n: Tensor(tuple(map(Const, s)), "f32") for n, s in {**SHAPES, "y": (64, 8)}.items()},
        constants={"w": WeightRef("net.onnx", 0, 2048), "u": Inline((1.0,) * 256)},
        nodes=tuple(node(name) for name in names.split()),
        placement=Placement(5, 5),
    )


def shuffled(graph: Graph) -> Graph:
    """The graph with the names of its tensors exchanged among each other."""
    names = list(TEXTS)
    to = dict(zip(names, [*names[2:], *names[:2]], strict=True))

    def moved(one):  # type: ignore[no-untyped-def]
        return replace(one, expr=replace(one.expr, tensor=to[one.name], body=rename_tensors(one.expr.body, to)))

    return replace(
        graph,
        nodes=tuple(map(moved, graph.nodes)),
        tensors={to.get(name, name): tensor for name, tensor in graph.tensors.items()},
        outputs=tuple(replace(port, tensor=to[port.tensor]) for port in graph.outputs),
    )


def test_names_are_no_difference() -> None:
    assert diff_graphs(network(), network()).empty
    found = diff_graphs(network(), shuffled(network()))
    assert found.empty, diff_text(found)
    assert diff_text(found) == "no changes: net, 5 nodes\n"


def test_a_node_that_computes_something_else() -> None:
    graph = network()
    text = "r[m, n] = maximum(h[m, n], 0.5)"
    other = replace(node("r"), expr=parse_tensor(text, {"m": Const(64), "n": Const(32)}))
    found = diff_graphs(graph, replace(graph, nodes=(graph.nodes[0], other, *graph.nodes[2:])))
    (change,) = found.groups
    assert (change.kinds, change.before, found.unchanged) == (("rewritten",), ("r",), 4)
    assert change.changes[0].kind == "expression"
    assert "0.5" in change.changes[0].after
    assert diff_to_json(found)["what"] == "graph"


def test_totals_and_limits() -> None:
    found = diff_graphs(network("h r g"), network())
    totals = {name: (metric["before"], metric["after"]) for name, metric in diff_to_json(found)["totals"].items()}
    assert totals["nodes"] == (3, 5)
    assert totals["constants"] == (2048 + 1024, 2048 + 1024)
    assert totals["flops"][0] == 2 * 64 * 32 * 16 + 64 * 32 + 2 * 64 * 8 * 32
    assert [(change.kinds, change.after) for change in found.groups] == [(("added",), ("top",)), (("added",), ("y",))]
    assert exceeded(found, parse_limits(["nodes=+0%"])) == ["nodes grew by 66.7 % (3 -> 5), 0 % is allowed"]
    with pytest.raises(Exception, match="these graphs have no traffic"):
        exceeded(found, parse_limits(["traffic=+0%"]))


def test_another_input_is_told() -> None:
    graph = network()
    found = diff_graphs(graph, replace(graph, inputs=(Port("data", "x"),)))
    assert {change.kind for change in found.changes} == {"input"}
    assert not found.groups
