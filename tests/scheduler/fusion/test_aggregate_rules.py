"""Groups by a table of rules: the lattice, what joins and what does not, tables that are wrong, plans that compute."""

from dataclasses import replace

import numpy as np
import pytest
from scheduler.graphs import make_graph, values_of
from scheduler.running import device, illegal, run_plan, tiny

from tilec.errors import ConfigError
from tilec.ir.graph import Graph
from tilec.ir.intervals import Candidates
from tilec.scheduler.fusion.aggregate import Areas, aggregate
from tilec.scheduler.fusion.patterns import edge_pattern, node_pattern
from tilec.scheduler.fusion.rule_table import apollo_table, rule_table
from tilec.scheduler.schedule import schedule
from tilec.spec.recipe import ScheduleOptions

pytestmark = pytest.mark.feature("A06", "A08")

E_ = {"m": 64, "n": 300, "k": 16, "h": 32}

NODES = [
    ("b[m, n] = x[m, n] + v[n]", E_),
    ("e[m, n] = exp(b[m, n])", E_),
    ("s[m] = sum(n, e[m, n])", E_),
    ("d[m, n] = e[m, n] / s[m]", E_),
    ("t[n, m] = d[m, n]", E_),
    ("p[k, m] = sum(n, t[n, m] * w[n, k])", E_),
    ("q[k, m] = p[k, m] * 2.0", E_),
    ("o[k, h] = q[k, h * 2] + 1.0", E_),
]


def graph(nodes=NODES, outputs=("o",)) -> Graph:
    return make_graph({"x": (64, 300), "v": (300,)}, nodes, list(outputs), {"w": (300, 16)})


def areas(made: Graph, table=None) -> Areas:
    nodes = [node for node in made.nodes if node.name not in made.constants]
    return aggregate(nodes, made, Candidates(), table or apollo_table())


def test_nodes_and_edges_have_the_patterns_of_the_lattice() -> None:
    made = graph()
    named = {node.name: node for node in made.nodes}
    assert {name: node_pattern(node, made) for name, node in named.items()} == {
        "b": "broadcast", "e": "elemwise", "s": "reduce", "d": "broadcast", "t": "reshape", "p": "contraction",
        "q": "elemwise", "o": "opaque",
    }  # fmt: skip
    edges = [("v", "b"), ("b", "e"), ("e", "s"), ("s", "d"), ("d", "t"), ("t", "p"), ("q", "o")]
    relations = [edge_pattern(tensor, named[node], made) for tensor, node in edges]
    assert relations == ["broadcast", "elemwise", "reduce", "broadcast", "reshape", "reduce", "opaque"]


def test_rules_join_and_say_which() -> None:
    found = areas(graph())
    assert found.rules == {
        "d->t": "reshape",
        "b->e": "reduce_width",
        "e->s": "reduce_width",
        "e->d": "reduce_output",
        "s->d": "reduce_output",
        "p->q": "contraction_depth",
    }
    assert len(set(found.home.values())) == 3


@pytest.mark.parametrize(("columns", "joined"), [(192, True), (191, False)])
def test_reductions_are_stitched_along_the_same_axes_when_they_read_enough(columns: int, joined: bool) -> None:
    """64 rows of 192 are the 12,288 elements of the table; a reduction of another extent never joins."""
    e = {"m": 64, "n": columns, "k": 64, "o": 1}
    nodes = [("s[m] = sum(n, x[m, n])", e), ("r[m] = max(n, x[m, n] - s[m])", e), ("z[o] = sum(k, r[k])", e)]
    made = make_graph({"x": (64, columns)}, nodes, ["z"])
    assert areas(made).rules == ({"s->r": "reduce_stitch"} if joined else {})


def test_nothing_joins_across_a_path_through_others_or_beyond_the_most_nodes() -> None:
    e = {"m": 8, "n": 8}
    nodes = [("a[m] = x[m] * 2.0", e), ("y[m] = sum(n, a[n] * w[n, m])", e), ("z[m] = a[m] + y[m]", e)]
    made = make_graph({"x": (8,)}, nodes, ["z"], {"w": (8, 8)})
    assert areas(made).rules == {"y->z": "contraction_depth"}
    one = apollo_table().model_copy(update={"most_nodes": 1})
    assert areas(made, one).rules == {}


@pytest.mark.slow_cases("outputs0-avx2", "outputs1-threads")
@pytest.mark.parametrize("target", ["avx2", "threads"])
@pytest.mark.parametrize("outputs", [("o",), ("o", "e", "s")])
def test_plans_by_rules_compute_and_have_a_reason_for_every_edge(target: str, outputs: tuple[str, ...]) -> None:
    spec = {"tiny": tiny(), "threads": tiny("explicit", 32)}.get(target) or device(target)
    made = graph(outputs=outputs)
    plan = schedule(made, spec, ScheduleOptions(fusion="apollo", bounds=False))
    assert illegal(plan) == []
    assert {each.code for each in plan.refusals} <= {"no-rule", "outputs-differ", "illegal", "capacity"}
    found = run_plan(plan, dict(values_of(replace(made, outputs=made.inputs))))
    for name, value in values_of(made).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("patterns: [reduce]\nmost_nodes: 1\nrules: []", "patterns are an order of"),
        ("patterns: [reduce]\nmost_nodes: 0\nrules: []", "2:13: expected greater than 0"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        rule_table(text, "rules.yaml")
    rule = "{name: r, area: [reduse], side: inputs, neighbour: reduce, relation: reduce}"
    lattice = "patterns: [reshape, elemwise, broadcast, reduce, contraction, opaque]"
    with pytest.raises(ConfigError, match="no pattern is called 'reduse'"):
        rule_table(f"{lattice}\nmost_nodes: 9\nrules: [{rule}]", "rules.yaml")
