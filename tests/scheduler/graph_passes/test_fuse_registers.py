"""fuse: parts of elementwise nodes around reductions, in registers, without cycles."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler.graphs import make_graph
from scheduler.models import attention

from tilec.ir.expr import operands
from tilec.ir.graph import Graph
from tilec.scheduler.graph_passes.align_iterators import align_iterators
from tilec.scheduler.graph_passes.compose import compose
from tilec.scheduler.graph_passes.fuse_registers import RegisterFusion, execution_order, fuse_registers, single_nodes
from tilec.scheduler.graph_passes.rematerialize import rematerialize
from tilec.scheduler.refusals import RewrittenGraph, edge_name

E = {"s": 4, "n": 6, "k": 5}


def names(partition: RegisterFusion) -> list[list[str]]:
    return [[node.name for node in part] for part in partition.parts]


def assert_ordered(partition: RegisterFusion) -> None:
    """Every part runs after what it reads, and its last node depends on all its others."""
    seen: set[str] = set()
    made = {node.name for part in partition.parts for node in part}
    for part in partition.parts:
        inside = {node.name for node in part}
        for node in part:
            assert {t for t in operands(node.expr) if t in made} <= seen | inside
        seen |= inside
        needed = {part[-1].name}
        for node in reversed(part):
            assert node.name in needed
            needed |= set(operands(node.expr))


@pytest.mark.feature("W32", "A05", "A10")
def test_epilogues_join_products() -> None:
    draft = align_iterators(compose(RewrittenGraph(attention())))
    partition = fuse_registers(rematerialize(draft).graph)
    assert_ordered(partition)
    found = names(partition)
    assert ["q_product", "q_sum", "q_scaled"] in found
    assert ["score", "masked"] in found
    assert ["o_product", "y"] in found
    assert ["variance_sum", "variance", "inverse"] in found
    assert partition.refused["masked->top"].code == "reduction"
    assert partition.refused["masked->e"].code == "cycle"
    assert partition.refused["top->e"].code == "iterates-differently"
    assert partition.refused["p->mix"].code == "recomputed"
    assert partition.refused["p->mix"].numbers == {"times": 8}


@pytest.mark.feature("A07")
def test_a_path_outside_keeps_nodes_apart() -> None:
    nodes = [
        ("a[s, n] = x[s, n] + 1.0", E),
        ("r[s] = sum(n, a[s, n])", E),
        ("y[s, n] = a[s, n] * r[s]", E),
    ]
    partition = fuse_registers(make_graph({"x": (4, 6)}, nodes, ["y"]))
    assert names(partition) == [["a"], ["r"], ["y"]]
    assert partition.refused["a->y"].code == "cycle"
    assert_ordered(partition)


def test_a_diamond_stays_together() -> None:
    nodes = [
        ("p[s, n] = sum(k, x[s, k] * w[k, n])", E),
        ("g[s, n] = sigmoid(p[s, n])", E),
        ("y[s, n] = p[s, n] * g[s, n]", E),
    ]
    assert names(fuse_registers(make_graph({"x": (4, 5), "w": (5, 6)}, nodes, ["y"]))) == [["p", "g", "y"]]


def test_of_two_products_one_takes_the_sum() -> None:
    nodes = [
        ("p[s, n] = sum(k, x[s, k] * w[k, n])", E),
        ("q[s, n] = sum(k, x[s, k] * v[k, n])", E),
        ("y[s, n] = p[s, n] + q[s, n]", E),
    ]
    partition = fuse_registers(make_graph({"x": (4, 5), "w": (5, 6), "v": (5, 6)}, nodes, ["y"]))
    assert names(partition) == [["p"], ["q", "y"]]
    assert set(partition.refused) == {"p->y"}


def test_what_does_not_lead_to_the_last_node_is_cut_off() -> None:
    nodes = [
        ("p[s, n] = sum(k, x[s, k] * w[k, n])", E),
        ("a[s, n] = p[s, n] + 1.0", E),
        ("b[s, n] = p[s, n] * 2.0", E),
        ("c[s, n] = b[s, n] * 3.0", E),
    ]
    partition = fuse_registers(make_graph({"x": (4, 5), "w": (5, 6)}, nodes, ["a", "c"]))
    assert sorted(map(tuple, names(partition))) == [("a",), ("p", "b", "c")]
    assert partition.refused["p->a"].code == "outputs-differ"
    assert_ordered(partition)


def test_nodes_of_constants_are_in_no_part() -> None:
    nodes = [("c[n] = b[n] * 2.0", E), ("y[s, n] = x[s, n] + c[n]", E)]
    assert names(fuse_registers(make_graph({"x": (4, 6)}, nodes, ["y"], {"b": (6,)}))) == [["y"]]


@pytest.mark.feature("W49")
def test_without_fusion_every_node_stands_alone() -> None:
    graph = attention()
    partition = single_nodes(graph)
    assert all(len(part) == 1 for part in partition.parts)
    assert {r.code for r in partition.refused.values()} == {"fusion-off"}
    made = {node.name for node in graph.nodes}
    assert set(partition.refused) == {edge_name(t, n.name) for n in graph.nodes for t in operands(n.expr) if t in made}


def test_execution_order_refuses_circles() -> None:
    assert execution_order([{1}, set(), {0}], [0, 1, 2]) == [1, 0, 2]
    with pytest.raises(ValueError, match="circle"):
        execution_order([{1}, {0}], [0, 1])


@st.composite
def elementwise_graphs(draw: st.DrawFn) -> Graph:
    """Chains, diamonds, row sums and broadcasts over one space."""
    nodes: list[tuple[str, dict[str, int]]] = []
    wide, narrow = ["x"], ["v"]
    for number in range(draw(st.integers(1, 9))):
        name = f"t{number}"
        kind = draw(st.sampled_from(["add", "sum", "scale"]))
        if kind == "sum":
            nodes.append((f"{name}[s] = sum(n, {draw(st.sampled_from(wide))}[s, n])", E))
            narrow.append(name)
        elif kind == "add":
            a, b = draw(st.sampled_from(wide)), draw(st.sampled_from(wide))
            nodes.append((f"{name}[s, n] = {a}[s, n] + {b}[s, n]", E))
            wide.append(name)
        else:
            a, b = draw(st.sampled_from(wide)), draw(st.sampled_from(narrow))
            nodes.append((f"{name}[s, n] = {a}[s, n] * {b}[s]", E))
            wide.append(name)
    made = [text.split("[")[0] for text, _ in nodes]
    outputs = draw(st.lists(st.sampled_from(made), min_size=1, max_size=2, unique=True))
    return make_graph({"x": (4, 6), "v": (4,)}, nodes, outputs)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(elementwise_graphs())
def test_parts_of_any_graph_can_run(graph: Graph) -> None:
    assert_ordered(fuse_registers(graph))
