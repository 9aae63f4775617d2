"""rows and stitch: parts over the same rows share a core's level, as long as rows fit and suffice."""

from dataclasses import replace

import pytest
from scheduler.graphs import make_graph
from scheduler.models import attention
from scheduler.running import tiny

from tilec.ir.graph import Graph
from tilec.ir.intervals import Candidates
from tilec.ir.plan import PlanLevel
from tilec.scheduler.compose import compose
from tilec.scheduler.inline import inline
from tilec.scheduler.parts import fuse
from tilec.scheduler.reasons import Draft
from tilec.scheduler.rows import rows_of
from tilec.scheduler.stitch import Grouping, separate, stitch
from tilec.scheduler.target import Target, target_of

E = {"s": 8, "n": 6, "k": 5}
TARGET = target_of(tiny())


def with_capacity(size: int) -> Target:
    core = replace(TARGET.levels[TARGET.core], capacity=size)
    return replace(TARGET, levels=(TARGET.levels[0], core, TARGET.levels[2]))


def stitched(graph: Graph, target: Target = TARGET) -> Grouping:
    return stitch(graph, fuse(graph), target, Candidates())


def names(grouping: Grouping) -> list[list[list[str]]]:
    return [[[node.name for node in part] for part in group] for group in grouping.groups]


SOFTMAX = [
    ("top[s] = max(n, x[s, n])", E),
    ("e[s, n] = exp(x[s, n] - top[s])", E),
    ("total[s] = sum(n, e[s, n])", E),
    ("y[s, n] = e[s, n] / total[s]", E),
]


@pytest.mark.feature("B17")
def test_softmax_is_one_group() -> None:
    grouping = stitched(make_graph({"x": (8, 6)}, SOFTMAX, ["y"]))
    assert names(grouping) == [[["top"], ["e"], ["total"], ["y"]]]
    assert not grouping.refused


def test_products_stay_by_themselves() -> None:
    graph = inline(compose(Draft(attention(tokens=8)))).graph
    grouping = stitched(graph)
    groups = names(grouping)
    assert [["top"], ["e"], ["total"], ["p"]] in groups
    assert [["mix"]] in groups
    assert [["mean_sum", "mean"], ["variance_sum", "variance", "inverse"], ["normal", "out"]] in groups
    assert grouping.refused["p->mix"].code == "recomputed"
    assert grouping.refused["masked->top"].code == "reduction"


def test_rows_that_do_not_fit_stay_apart() -> None:
    grouping = stitched(make_graph({"x": (8, 6)}, SOFTMAX, ["y"]), with_capacity(64))
    assert names(grouping) == [[["top"]], [["e"]], [["total"]], [["y"]]]
    assert grouping.refused["e->total"].code == "capacity"
    assert grouping.refused["e->total"].numbers["capacity"] == 64


def test_too_few_rows_for_the_cores_stay_apart() -> None:
    e = {"s": 1, "n": 300}
    nodes = [("a[s, n] = exp(x[s, n])", e), ("r[s] = sum(n, a[s, n])", e), ("y[s, n] = a[s, n] * r[s]", e)]
    grouping = stitched(make_graph({"x": (1, 300)}, nodes, ["y"]), with_capacity(1 << 20))
    assert all(len(group) == 1 for group in grouping.groups)
    assert grouping.refused["a->r"].code == "reduction"
    e = {"s": 2, "n": 300, "c": 3}
    nodes = [
        ("a[s, c, n] = exp(x[s, c, n])", e),
        ("r[s] = sum(c, n, a[s, c, n])", e),
        ("y[s, c, n] = a[s, c, n] * r[s]", e),
    ]
    grouping = stitched(make_graph({"x": (2, 3, 300)}, nodes, ["y"]), replace(with_capacity(1 << 20), cores=3))
    assert grouping.refused["a->r"].code == "parallelism"


def test_independent_reductions_of_one_result_join_with_it() -> None:
    nodes = [
        ("low[s] = min(n, x[s, n])", E),
        ("high[s] = max(n, x[s, n])", E),
        ("y[s, n] = (x[s, n] - low[s]) / (high[s] - low[s])", E),
    ]
    assert names(stitched(make_graph({"x": (8, 6)}, nodes, ["y"]))) == [[["low"], ["high"], ["y"]]]


@pytest.mark.feature("A07")
def test_a_path_through_another_group_keeps_groups_apart() -> None:
    e = {"s": 8, "n": 6, "k": 6, "m": 6}
    nodes = [
        ("a[s] = sum(n, x[s, n])", e),
        ("b[s, n] = x[s, n] * a[s]", e),
        ("c[s, m] = sum(k, b[s, k] * w[k, m])", e),
        ("d[s] = max(m, c[s, m])", e),
        ("y[s, n] = b[s, n] + d[s]", e),
    ]
    grouping = stitched(make_graph({"x": (8, 6), "w": (6, 6)}, nodes, ["y"]))
    order = [node.name for group in grouping.groups for part in group for node in part]
    assert order.index("c") < order.index("d") < order.index("y")
    assert [["a"], ["b"]] in names(grouping)


def test_separate_keeps_parts() -> None:
    partition = fuse(make_graph({"x": (8, 6)}, SOFTMAX, ["y"]))
    assert separate(partition).groups == tuple((part,) for part in partition.parts)


@pytest.mark.feature("W06")
def test_rows_are_leading_iterators_that_all_nodes_share() -> None:
    graph = make_graph({"x": (8, 6)}, SOFTMAX, ["y"])
    rows = rows_of(graph.nodes)
    assert rows.iterators == ("s",)
    assert rows.shared["s"] == {"top": "s", "e": "s", "total": "s", "y": "s"}
    columns = make_graph({"x": (8, 6)}, [("r[n] = sum(s, x[s, n])", E), ("y[s, n] = x[s, n] - r[n]", E)], ["y"])
    assert rows_of(columns.nodes).iterators == (), "columns are no runs of memory"
    shifted = make_graph(
        {"x": (9, 6)}, [("a[s, n] = exp(x[s, n])", {"s": 9, "n": 6}), ("y[s, n] = a[s, n] + a[s + 1, n]", E)], ["y"]
    )
    assert rows_of(shifted.nodes).iterators == ()


def test_levels_of_a_target_are_plan_levels() -> None:
    assert all(isinstance(level, PlanLevel) for level in TARGET.levels)
