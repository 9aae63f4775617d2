"""A plan with sizes put in: its nodes read what they read, whatever the sizes decide."""

import numpy as np
import pytest
from scheduler.graphs import make_graph
from scheduler.running import device, illegal, run_plan

from tilec.ir.bind import bind, simplify_reads
from tilec.ir.bind_plan import bind_plan
from tilec.ir.evaluate import evaluate
from tilec.ir.expr import operands
from tilec.ir.text import parse_tensor, tensor_text
from tilec.ir.verify.plan import check_plan
from tilec.scheduler import schedule


@pytest.mark.parametrize(
    ("body", "simplified"),
    [
        ("where(5 == 5, 0.0, x[i])", "where(True, 0.0, x[i])"),
        ("where(5 == 5, x[i], x[i + 0])", "x[i]"),
        ("where(3 < 4, w[i + 1 - 1], x[i]) + where(2 < 1, 1.0, w[2])", "where(True, w[i], x[i]) + w[2]"),
        ("w[where(4 < 4, x[i], i)]", "w[where(False, x[i], i)]"),
    ],
)
def test_what_is_read_stays_read(body: str, simplified: str) -> None:
    expr = simplify_reads(parse_tensor(f"y[i] = {body}", {"i": 5}))
    assert tensor_text(expr) == f"y[i] = {simplified}"
    reduced = simplify_reads(parse_tensor(f"y[()] = sum(i, {body})", {"i": 5}))
    assert tensor_text(reduced) == f"y[()] = sum(i, {simplified})"


@pytest.mark.parametrize("name", ["zen5-avx512", "a100"])
def test_a_choice_between_sizes_that_are_likely_equal(name: str) -> None:
    """Both sizes are taken for 128, where the choice leaves nothing of `z`, and nothing of the part that makes it."""
    e: dict[str, int | str] = {"i": "n", "j": "m", "k": "m"}
    nodes = [
        ("z[i] = sum(k, x[i, k] * x[i, k])", e),
        ("p[i, j] = exp(x[i, j]) + where(n == m, 0.0, z[i] - f32(n))", e),
        ("y[i] = sum(j, p[i, j] * where(m < n, 1.0, x[i, 0]))", e),
    ]
    graph = make_graph({"x": ("n", "m")}, nodes, ["y"], symbols=["n", "m"])
    plan = schedule(graph, device(name))
    assert check_plan(plan) == ()
    assert illegal(plan) == []
    bound = bind_plan(plan, {"n": 128, "m": 128})
    for group, other in zip(plan.groups, bound.groups, strict=True):
        assert [operands(n.expr) for n in group.nodes] == [operands(n.expr) for n in other.nodes]
    for sizes in ({"n": 7, "m": 7}, {"n": 6, "m": 17}, {"n": 33, "m": 5}):
        values = {"x": np.random.default_rng(1).uniform(-1, 1, (sizes["n"], sizes["m"])).astype(np.float32)}
        for node in graph.nodes:
            values[node.name] = evaluate(node.expr, values, sizes, "f32")
        for found in (run_plan(plan, values, sizes), run_plan(bind_plan(plan, sizes), values)):
            np.testing.assert_allclose(found["y"], values["y"], rtol=1e-4)
    assert "where" not in tensor_text(bind(graph, {"n": 128, "m": 128}).nodes[1].expr)
