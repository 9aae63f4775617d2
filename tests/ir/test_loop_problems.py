"""What the verifier of graphs says of serial loops that are no loops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.importer.control.test_scan import model, running_sum
from tilec.importer import import_model
from tilec.ir.expr import Const
from tilec.ir.graph import Graph, Tensor
from tilec.ir.verify.graph import check_graph
from tilec.ir.verify.loops import loop_problems


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A scan of symbolic length."""
    return import_model(model(tmp_path, running_sum(), [3], ["n", 3])).graph


def test_halves_of_loops(graph: Graph) -> None:
    start, end = graph.calls
    assert check_graph(graph) == ()
    assert "does not end" in loop_problems([start], graph.tensors)[0]
    assert "does not start" in loop_problems([end], graph.tensors)[0]


def test_a_carried_value_of_another_shape(graph: Graph) -> None:
    start, end = graph.calls
    tensors = {**graph.tensors, end.inputs[0].tensor: Tensor((Const(4),), "f32")}
    assert "carried value 0" in loop_problems([start, end], tensors)[0]
    assert "carries 0 values" in loop_problems([start, replace(end, carried=0)], graph.tensors)[0]
    assert (
        "takes no tensor apart" in loop_problems([replace(start, carried=2), replace(end, carried=2)], graph.tensors)[0]
    )
