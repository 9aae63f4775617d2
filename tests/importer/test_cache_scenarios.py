"""Scenarios that caches imply: a step and a first call."""

from pathlib import Path

import pytest

from tests import state_models
from tests.language_models import written
from tilec.importer import import_model
from tilec.ir.scenarios import scenario_text


def scattered(path: Path) -> Path:
    return written.scattered(path, 64)


@pytest.mark.parametrize(
    ("write", "state", "decode", "prefill"),
    [
        (state_models.growing, "separate", "new = 1", "past = 0"),
        (state_models.growing, "in-place", "new = 1", "past = 0"),
        (state_models.decoder, "separate", "s = 1, t = room + 1", "room = 0, t = s"),
        (state_models.decoder, "in-place", "s = 1", "t = s"),
        (scattered, "separate", "new = 1", "any sizes"),
        (scattered, "in-place", "new = 1", "past_rows = 0"),
    ],
)
def test_caches_imply_a_step_and_a_first_call(tmp_path: Path, write, state: str, decode: str, prefill: str) -> None:
    graph = import_model(write(tmp_path / "m.onnx"), state=state).graph
    assert {name: scenario_text(each) for name, each in graph.scenarios.items()} == {
        "decode": decode,
        "prefill": prefill,
    }
    step, first = (each.at[0] for each in graph.scenarios.values())
    new = next(iter(graph.scenarios["decode"].sizes))
    assert step[new] == 1
    assert first[new] > 1


def test_rows_behind_an_input_that_nothing_else_reads_are_no_cache(tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    node = helper.make_node("Concat", ["a", "b"], ["c"], axis=0)
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [e, 4]) for n, e in (("a", "n"), ("b", "m"))]
    out = helper.make_tensor_value_info("c", TensorProto.FLOAT, ["k", 4])
    opset = [helper.make_opsetid("", 20)]
    onnx.save(
        helper.make_model(helper.make_graph([node], "g", infos, [out]), opset_imports=opset, ir_version=9),
        tmp_path / "m.onnx",
    )
    assert not import_model(tmp_path / "m.onnx").graph.scenarios
