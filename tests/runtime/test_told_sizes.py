"""Sizes that no dimension is alone: one that is a multiple of them plus a constant tells them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.scheduler.graphs import make_graph
from tests.verify.builds import generated
from tilec.codegen.symbol_sources import symbol_specs
from tilec.errors import UnsupportedError, UsageError
from tilec.ir.graph import Graph
from tilec.ir.plan import Plan
from tilec.runtime import Session, load
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device


def plan_of(*nodes: tuple[str, dict[str, int | str]], **inputs: tuple[int | str, ...]) -> Plan:
    symbols = ["seq", *(["n"] if any("n" in str(e) for shape in inputs.values() for e in shape) else [])]
    graph: Graph = make_graph(inputs, list(nodes), ["Y"], {}, symbols)
    return schedule(graph, resolve_device("host"), ScheduleOptions())


def session_of(plan: Plan, folder: Path) -> Session:
    generated(plan, folder, "host")
    return load(folder)


PAIRS = ("Y[i] = X[2*i] * X[2*i + 1]", {"i": "seq"})
"""Products of neighbours in a vector of even length."""


@pytest.mark.feature("B01")
def test_a_multiple_tells_a_size(tmp_path: Path) -> None:
    session = session_of(plan_of(PAIRS, X=("2*seq",)), tmp_path)
    assert [(spec.name, spec.factor, spec.constant) for spec in session.symbols] == [("seq", 2, 0)]
    for size in (0, 2, 34, 200, 2002):
        x = np.random.default_rng(size).standard_normal(size).astype(np.float32)
        np.testing.assert_array_equal(session.run({"X": x})["Y"], x[::2] * x[1::2])
    with pytest.raises(UsageError, match=r"'X' has 7 along dimension 0, the model has 2 \* seq there: no integer seq"):
        session.run({"X": np.zeros(7, np.float32)})


@pytest.mark.feature("B01")
def test_a_multiple_and_a_constant_tell_a_size(tmp_path: Path) -> None:
    plan = plan_of(("Y[i, j] = sum(r, X[i + 2, 3*j + r])", {"i": "seq", "j": "n", "r": 4}), X=("seq + 2", "3*n + 1"))
    session = session_of(plan, tmp_path)
    told = {spec.name: (spec.dim, spec.factor, spec.constant) for spec in session.symbols}
    assert told == {"seq": (0, 1, 2), "n": (1, 3, 1)}
    for rows, columns in ((0, 1), (1, 0), (1, 1), (9, 40), (33, 7)):
        x = np.random.default_rng(rows).standard_normal((rows + 2, 3 * columns + 1)).astype(np.float32)
        wanted = [[x[i + 2, 3 * j : 3 * j + 4].sum() for j in range(columns)] for i in range(rows)]
        np.testing.assert_allclose(
            session.run({"X": x})["Y"], np.reshape(wanted, (rows, columns)), rtol=1e-5, atol=1e-6
        )
    with pytest.raises(UsageError, match=r"has 12 along dimension 1, the model has 3 \* n \+ 1 there: no integer n"):
        session.run({"X": np.zeros((5, 12), np.float32)})
    with pytest.raises(
        UsageError, match=r"has 1 along dimension 0, the model has seq \+ 2 there: seq is -1, the model"
    ):
        session.run({"X": np.zeros((1, 13), np.float32)})


def test_a_plain_dimension_is_preferred() -> None:
    (spec,) = symbol_specs(plan_of(PAIRS, X=("2*seq",), Z=(3, "seq")))
    assert (spec.at, spec.dim, spec.factor) == (1, 1, 1)


def test_a_dimension_that_several_sizes_share_tells_none() -> None:
    plan = plan_of(("Y[i] = X[2*(i // 2)]", {"i": "seq"}), X=("(seq + 1) // 2 * 2",))
    with pytest.raises(UnsupportedError, match="the size seq cannot be read off an input: no dimension is a multiple"):
        symbol_specs(plan)
