"""Verdicts come of the states of the search alone: of nodes that were moved, copied for a loop, or cut apart again."""

from itertools import pairwise

from scheduler.graphs import make_graph
from scheduler.running import tiny

from tilec.analysis.explain.edge import explain_edge
from tilec.analysis.explain.replay import Replay, replay
from tilec.ir.expr import operands
from tilec.scheduler.pipeline import SEARCH
from tilec.spec.recipe import ScheduleOptions


def looped() -> Replay:
    """A loop that several reductions share, with copies of nodes that are read in it and behind it."""
    extents = {"m": 6, "n": 700}
    texts = [
        "X[m] = max(n, A[m, n])",
        "D[m, n] = A[m, n] - X[m]",
        "E[m, n] = exp(D[m, n])",
        "W[m, n] = E[m, n] * B[n]",
        "Z[m] = sum(n, W[m, n])",
        "R[m, n] = E[m, n] / Z[m]",
    ]
    graph = make_graph({"A": (6, 700), "B": (700,)}, [(text, extents) for text in texts], ["R"])
    return replay(graph, tiny(), ScheduleOptions(objective="traffic", passes=()))


def test_nodes_that_are_copied_for_a_loop_stand_for_their_originals_before() -> None:
    found = looped()
    nodes = {node.name: node for group in found.plan.groups for node in group.nodes}
    edges = [(t, name) for name, node in nodes.items() for t in operands(node.expr) if t in nodes]
    copied = [edge for edge in edges if any(name.endswith("_running") for name in edge)]
    assert copied
    rules = {step.name: step.rule for step in SEARCH}
    for edge in edges:
        steps = explain_edge(found, *edge, relax=False).steps
        assert steps[0].step == "fuse_registers"
        assert all(each.rule == rules[each.step] for each in steps)
        verdicts = [(each.level, each.reason) for each in steps]
        assert all(one != other for one, other in pairwise(verdicts))
    for edge in copied:
        explained = explain_edge(found, *edge, relax=False)
        assert explained.connected is not None
        assert explained.decided_by in {step.name for step in SEARCH}
