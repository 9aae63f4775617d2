"""Groups of a plan as graphs, and what of their traffic is counted."""

from __future__ import annotations

from dataclasses import replace

from report.plans import group, layers, plan
from scheduler.running import threaded

from bounds.graphs import graph, mlp
from tilec.bounds.einsum.lower import product_sizes
from tilec.bounds.graph.contractions import contraction_of
from tilec.bounds.plan.groups import group_graph, is_counted, plan_graph
from tilec.ir.expr import operands
from tilec.ir.verify.graph import check_graph
from tilec.scheduler import schedule
from tilec.spec.resolve import resolve_device


def test_packed_weights_are_read_as_they_were():
    net, weight = mlp(32, 16, 50, 8), plan().constants["w"]
    constants = dict.fromkeys(("v", "w"), weight)
    inputs = tuple(port for port in net.inputs if port.tensor not in constants)
    made = schedule(replace(net, inputs=inputs, constants=constants), threaded("a100"))
    found = plan_graph(made)
    assert check_graph(found) == ()
    packed = {node.name: node for node in made.prepared}
    assert {name: found.tensors[name] for name in packed} == {
        name: net.tensors[operands(node.expr)[0]] for name, node in packed.items()
    }
    reading = [node for node in found.nodes if packed.keys() & set(operands(node.expr))]
    assert len(reading) == 2
    for node in reading:
        einsum = contraction_of(node, found.tensors)
        assert einsum is not None
        assert product_sizes(einsum) is not None


def test_a_group_has_the_borders_of_the_plan():
    first, *_ = layers()
    found = group_graph(plan(*layers()), first)
    assert ([port.tensor for port in found.inputs], [port.tensor for port in found.outputs]) == (["x", "w"], ["r"])
    assert [node.name for node in found.nodes] == ["h", "r"]
    whole = plan_graph(plan(*layers()))
    assert ([port.tensor for port in whole.inputs], [port.tensor for port in whole.outputs]) == (["x", "w", "u"], ["y"])


def test_operands_read_in_place_are_not_counted():
    assert is_counted(group("h"), "smem")
    assert is_counted(group("h", loads={"x": ("smem",), "w": ("smem",)}), "smem")
    assert not is_counted(group("h", loads={"x": ("smem",), "w": ()}), "smem")
    assert not is_counted(group("h", loads={"x": ("smem",), "w": ("smem",)}), "reg")
    inside = group("h r", {"h->r": "reg"}, loads={"h": ()})
    assert is_counted(inside, "smem")


def test_what_data_index_is_counted_where_it_lies():
    gather = graph({"t": (9, 4), "i": (3,)}, [("y[j, k] = t[i[j], k]", {"j": 3, "k": 4})], ["y"], {"i": "i64"})
    (only,) = schedule(gather, resolve_device("a100")).groups
    assert only.variants[0].loads["t"] == ()
    assert is_counted(only, "smem")
