from __future__ import annotations

import pytest

from bounds.graphs import Text, graph, mlp
from tilec.bounds.resident import resident_from
from tilec.bounds.runs import Surroundings

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
