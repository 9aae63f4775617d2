"""Plans of graphs with calls: no group reaches over a call, what a call reads is stored as the graph has it."""

from dataclasses import replace

import pytest
from scheduler.graphs import make_graph
from scheduler.running import tiny

from tilec.ir.call_segments import segment_of
from tilec.ir.graph import Call, Port
from tilec.ir.verify.graph import check_graph
from tilec.scheduler import schedule

SIZE = {"i": 8, "j": 16}


def with_call(graph, reads, makes):
    """The graph with an input turned into what a call makes."""
    call = Call("fallback/0.onnx", (Port("in", reads),), (Port("out", makes),))
    return replace(graph, inputs=tuple(p for p in graph.inputs if p.tensor != makes), calls=(call,))


def chain():
    """a = exp(x) goes into the call, whose result r meets b = a * 2 behind it."""
    nodes = [
        ("a[i, j] = exp(x[i, j])", SIZE),
        ("b[i, j] = a[i, j] * 2.0", SIZE),
        ("c[i, j] = b[i, j] + r[i, j]", SIZE),
        ("y[i] = sum(j, c[i, j])", SIZE),
    ]
    return with_call(make_graph({"x": (8, 16), "r": (8, 16)}, nodes, ["y"]), "a", "r")


@pytest.mark.parametrize("kind", ["implicit", "explicit"])
def test_groups_stay_between_calls(kind):
    graph = chain()
    assert check_graph(graph) == ()
    plan = schedule(graph, tiny() if kind == "implicit" else tiny("explicit", 64))
    assert plan.calls == graph.calls
    assert [port.tensor for port in plan.inputs] == ["x"]
    there = segment_of([node for group in plan.groups for node in group.nodes], plan.calls)
    for group in plan.groups:
        assert len({there[node.name] for node in group.nodes}) == 1
    stored = {tensor for group in plan.groups for tensor in group.outputs}
    assert "a" in stored
    assert plan.tensors["a"] == graph.tensors["a"]
    assert "r" in plan.tensors


def test_a_call_that_reads_what_depends_on_it_is_found():
    nodes = [("b[i, j] = r[i, j] * 2.0", SIZE), ("y[i] = sum(j, b[i, j])", SIZE)]
    graph = with_call(make_graph({"x": (8, 16), "r": (8, 16)}, nodes, ["y"]), "b", "r")
    assert check_graph(graph) == ("fallback/0.onnx reads b, which depends on it",)


def test_a_call_that_reads_nothing_known_is_found():
    graph = with_call(make_graph({"x": (4,), "r": (4,)}, [("y[i] = r[i]", {"i": 4})], ["y"]), "z", "r")
    assert check_graph(graph) == ("fallback/0.onnx reads z, which is never computed",)
