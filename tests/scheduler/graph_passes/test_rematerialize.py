"""inline: cheap elementwise parts are computed again by the reductions that read them."""

import pytest
from scheduler.graphs import assert_same, make_graph
from scheduler.models import attention

from tilec.ir.graph import Graph
from tilec.ir.text import parse_tensor, tensor_text
from tilec.scheduler.graph_passes.rematerialize import operations, rematerialize
from tilec.scheduler.refusals import RewrittenGraph

E = {"s": 4, "n": 6, "k": 6, "m": 5}


def inlined(graph: Graph) -> dict[str, str]:
    after = rematerialize(RewrittenGraph(graph)).graph
    assert_same(graph, after)
    return {node.name: tensor_text(node.expr) for node in after.nodes}


@pytest.mark.feature("A09")
def test_differences_from_the_mean_need_no_tensor() -> None:
    found = inlined(attention())
    assert "centered" not in found
    assert "square" not in found
    assert found["variance_sum"] == "variance_sum[b, s] = sum(n, (y[b, s, n] - mean[b, s]) * (y[b, s, n] - mean[b, s]))"
    assert found["normal"] == "normal[b, s, n] = (y[b, s, n] - mean[b, s]) * inverse[b, s]"


def test_an_exponential_that_two_read_is_computed_once() -> None:
    assert "e" in inlined(attention())


def test_an_exponential_that_one_sum_reads_is_inlined() -> None:
    nodes = [("e[s, n] = exp(x[s, n])", E), ("y[s] = sum(n, e[s, n])", E)]
    assert inlined(make_graph({"x": (4, 6)}, nodes, ["y"])) == {"y": "y[s] = sum(n, exp(x[s, n]))"}


def test_a_product_does_not_compute_its_operands() -> None:
    nodes = [("e[s, k] = x[s, k] + 1.0", E), ("y[s, m] = sum(k, e[s, k] * w[k, m])", E)]
    assert "e" in inlined(make_graph({"x": (4, 6), "w": (6, 5)}, nodes, ["y"]))


def test_an_output_stays() -> None:
    nodes = [("e[s, n] = x[s, n] + 1.0", E), ("y[s] = sum(n, e[s, n])", E)]
    assert "e" in inlined(make_graph({"x": (4, 6)}, nodes, ["y", "e"]))


def test_a_square_behind_a_product_that_is_stored_anyway_moves_to_its_sum() -> None:
    nodes = [
        ("p[s, m] = sum(k, x[s, k] * w[k, m])", E),
        ("q[s, m] = p[s, m] * p[s, m]", E),
        ("y[s] = sum(m, q[s, m])", E),
        ("z[s, m] = p[s, m] / y[s]", E),
    ]
    found = inlined(make_graph({"x": (4, 6), "w": (6, 5)}, nodes, ["y", "z"]))
    assert "q" not in found
    assert found["y"] == "y[s] = sum(m, p[s, m] * p[s, m])"


def test_operations_leave_index_arithmetic_out() -> None:
    assert operations(parse_tensor("Y[i] = X[i*2 + 1] + Z[i // 3]", {"i": 4})) == 1
    assert operations(parse_tensor("Y[i] = exp(X[i])", {"i": 4})) > 8
    assert operations(parse_tensor("Y[i] = maximum(X[i], 0.0)", {"i": 4})) == 1


def test_f16_that_is_computed_again_is_rounded_as_if_it_had_been_stored() -> None:
    nodes = [("e[s, n] = x[s, n] * 3.0", E), ("y[s] = max(n, e[s, n])", E)]
    found = inlined(make_graph({"x": (4, 6)}, nodes, ["y"], ttypes={"x": "f16"}))
    assert found == {"y": "y[s] = max(n, f16(x[s, n] * 3.0))"}


def test_padding_stays_where_data_says_what_is_read() -> None:
    nodes = [
        ("p[s, n] = where(n >= 2, x[s, n - 2], 0.0)", {"s": 4, "n": 8}),
        ("y[s, k] = p[s, i[k]] + 1.0", {"s": 4, "k": 5}),
    ]
    assert "p" in inlined(make_graph({"x": (4, 6), "i": (5,)}, nodes, ["y"], ttypes={"i": "i64"}))
