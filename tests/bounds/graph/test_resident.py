from __future__ import annotations

import pytest

from bounds.graphs import Text, graph, mlp
from tilec.bounds.graph.intervals import MAX_NODES, Surroundings
from tilec.bounds.graph.resident import resident_from
from tilec.ir.graph import Graph

F32 = 4


@pytest.mark.feature("O16")
def test_a_whole_result_that_stays_is_not_moved() -> None:
    found = mlp(32, 16, 64, 8)
    runs = list(resident_from(0, Surroundings(found, found.nodes)))
    assert [run.end for run in runs] == [1, 2, 3, 4]
    assert all(run.resident for run in runs)
    weights, results = 16 * 64 + 64 + 64 * 8, 32 * 8
    assert runs[-1].side == F32 * (32 * 16 + weights + results)
    # The hidden layer beside the smaller of two operands that come in, later beside the results.
    assert runs[-1].least == F32 * (32 * 64 + 32 * 16)
    assert [reader.node.name for reader in runs[-1].readers] == ["h", "y"]
    # Cut before the last product, what was made leaves.
    assert runs[2].side == F32 * (32 * 16 + 16 * 64 + 64 + 32 * 64)


def test_what_is_read_last_is_written_over_and_what_is_read_later_stays() -> None:
    nodes: list[Text] = [("a[i] = x[i] + 1.0", {"i": 16}), ("b[i] = a[i] * 2.0", {"i": 16}),
                         ("c[i] = b[i] + a[i]", {"i": 16}), ("y[o] = sum(r, c[r + o])", {"o": 1, "r": 16})]  # fmt: skip
    found = graph({"x": (16,)}, nodes, ["y"])
    runs = list(resident_from(0, Surroundings(found, found.nodes)))
    assert [run.least for run in runs] == [F32 * 32, F32 * 32, F32 * 32]
    assert [run.side for run in runs] == [F32 * (16 + 32), F32 * (16 + 16), F32 * (16 + 1)]


def test_outputs_leave_whoever_reads_them() -> None:
    nodes: list[Text] = [("a[i] = x[i] + 1.0", {"i": 16}), ("y[i] = a[i] * 2.0", {"i": 16})]
    found = graph({"x": (16,)}, nodes, ["a", "y"])
    (run,) = resident_from(0, Surroundings(found, found.nodes))
    assert run.side == F32 * 48


def least_with(found: Graph, end: int) -> dict[int, int]:
    """Traffic of the runs of all nodes before `end` -> bytes of buffer."""
    runs = [run for run in resident_from(0, Surroundings(found, found.nodes)) if run.end == end]
    return {run.side: run.least for run in runs}


def test_an_operand_of_two_nodes_stays_between_them_or_comes_in_again() -> None:
    nodes: list[Text] = [("s[i] = sum(r, x[i, r])", {"i": 4, "r": 16}),
                         ("w[i, j] = sum(r, s[i] * v[r, j])", {"i": 4, "j": 2, "r": 8}),
                         ("y[i, j] = x[i, j] * s[i] + w[i, j % 2]", {"i": 4, "j": 16})]  # fmt: skip
    found = graph({"x": (4, 16), "v": (8, 2)}, nodes, ["y"])
    once = F32 * (64 + 16 + 64)
    # y is written over s and w, but beside x.
    assert least_with(found, 3) == {once + F32 * 64: F32 * 64, once: F32 * 2 * 64}


def test_small_operands_stay_where_large_ones_have_no_room() -> None:
    nodes: list[Text] = [("a[i] = sum(r, x[r, i] * b[i])", {"i": 4, "r": 64}),
                         ("y[i] = sum(r, x[r, i] * a[i] * b[i])", {"i": 4, "r": 64})]  # fmt: skip
    found = graph({"x": (64, 4), "b": (4,)}, nodes, ["y"])
    assert sorted(least_with(found, 2)) == [F32 * (256 + 4 + 4), F32 * (512 + 4 + 4), F32 * (512 + 8 + 4)]


def test_what_is_read_in_one_pass_comes_in_once_without_staying() -> None:
    nodes: list[Text] = [("h[i, j] = sum(r, u[i, r] * v[r, j])", {"i": 8, "j": 8, "r": 8}),
                         ("a[i, j] = h[i, j] * x[i, j]", {"i": 8, "j": 8}),
                         ("y[i, j] = maximum(a[i, j], x[i, j])", {"i": 8, "j": 8})]  # fmt: skip
    found = graph({"u": (8, 8), "v": (8, 8), "x": (8, 8)}, nodes, ["y"])
    assert least_with(found, 3) == {F32 * 4 * 64: F32 * 2 * 64}
    turned = [*nodes[:2], ("y[i, j] = maximum(a[i, j], x[j, i])", {"i": 8, "j": 8})]
    assert F32 * 5 * 64 in least_with(graph({"u": (8, 8), "v": (8, 8), "x": (8, 8)}, turned, ["y"]), 3)


def test_from_the_first_node_a_run_may_hold_a_long_graph() -> None:
    nodes: list[Text] = [(f"t{i + 1}[i] = t{i}[i] + x[i]", {"i": 16}) for i in range(MAX_NODES + 8)]
    found = graph({"t0": (16,), "x": (16,)}, nodes, [f"t{MAX_NODES + 8}"])
    runs = list(resident_from(0, Surroundings(found, found.nodes)))
    assert runs[-1].end == MAX_NODES + 8
    assert runs[-1].side == F32 * 3 * 16
    assert max(run.end for run in resident_from(1, Surroundings(found, found.nodes))) == MAX_NODES + 1
