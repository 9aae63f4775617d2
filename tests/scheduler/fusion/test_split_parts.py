"""Parts of elementwise nodes around reductions are cut where their nodes are predicted to cost less apart."""

from dataclasses import replace

import pytest
from scheduler.graphs import make_graph
from scheduler.running import device

from tilec.ir.graph import Graph
from tilec.ir.intervals import Candidates
from tilec.scheduler.fusion.split_parts import split_parts
from tilec.scheduler.fusion_problem import FusionProblem
from tilec.scheduler.graph_passes.fuse_registers import RegisterFusion, fuse_registers
from tilec.scheduler.target_model import TargetModel, target_model_of

A100 = target_model_of(device("a100"))


def graph_of(extent: int) -> Graph:
    domain = {"s": extent, "n": 64}
    point = {"s": extent}
    nodes = [
        ("t[s] = sum(n, x[s, n])", domain),
        ("a[s] = exp(t[s])", point),
        ("y[s] = a[s] + 1", point),
    ]
    return make_graph({"x": (extent, 64)}, nodes, ["y"])


def cut_of(graph: Graph, target: TargetModel) -> RegisterFusion:
    parted = fuse_registers(graph)
    assert len(parted.parts) == 1
    return split_parts(parted, FusionProblem(graph, parted.parts, target, Candidates(), "time", frozenset({"y"})), 0.99)


@pytest.mark.feature("W16")
def test_parts_stay_whole_where_launches_cost() -> None:
    parted = cut_of(graph_of(512), A100)
    assert [[node.name for node in part] for part in parted.parts] == [["t", "a", "y"]]
    assert not parted.refused


@pytest.mark.feature("W16")
def test_parts_are_cut_where_pieces_cost_less() -> None:
    """With launches that give time back every piece gains."""
    parted = cut_of(graph_of(512), replace(A100, launch=-1e-6))
    assert [[node.name for node in part] for part in parted.parts] == [["t"], ["a"], ["y"]]
    assert {reason.edge: reason.code for reason in parted.refused.values()} == {"t->a": "slower", "a->y": "slower"}
    for reason in parted.refused.values():
        assert int(reason.numbers["apart"]) < int(reason.numbers["joined"])
