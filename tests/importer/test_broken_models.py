"""Models that break a rule of ONNX are refused at import as by onnxruntime; where they differ, the reason is here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnxruntime
import pytest

from tests.importer.broken import CHANGES, branches, broken, layer, lookup, sequence
from tilec.errors import TilecError
from tilec.importer import Imported, import_model

REFUSED_HERE_ALONE = {
    "output_twice": "outputs are told by their names",
    "output_none": "there is nothing to compute",
    "input_negative": "-1 is written for an extent that varies, other negative ones are mistakes",
    "input_nameless": "nobody can feed it",
    "initializer_twice": "which of the two counts is not said",
}
ACCEPTED_HERE_ALONE = {
    "node_twice_name": "names of nodes have no meaning, and older versions of onnxruntime take them",
    "opset_5": "onnxruntime runs some operators of opsets below 7, and says which only when it opens them",
}
SAID = {
    "output_type": "node 'relu' (Relu): its result 'y' is tensor(float), `graph.output` declares it as tensor(int64)",
    "output_seq": "`graph.output` declares it as seq(tensor(float))",
    "value_info_type": "node 'mm' (MatMul): its result 'm' is tensor(float), `graph.value_info` declares it as",
    "input_string": "node 'mm' (MatMul): input 0 (A) is tensor(string)",
    "input_seq": "node 'mm' (MatMul): input 0 (A) is seq(tensor(float))",
    "initializer_type_vs_input": "input 'w': it is declared as tensor(int64), its initializer is tensor(float)",
    "initializer_shape_vs_input": "input 'w': it is declared as [4, 5], its initializer is [4, 3]",
    "output_twice": "output 'y': two outputs have this name",
    "input_negative": "input 'x': the extent -3 is negative",
    "node_unknown_domain": "operators of domain 'com.acme' are not known",
    "ir_99": "has version 99 of ONNX's format",
    "opset_99": "uses opset 99",
}


@pytest.mark.parametrize("base", [layer, lookup, branches, sequence])
def test_the_models_are_valid(tmp_path: Path, base: Any) -> None:
    (tmp_path / "m.onnx").write_bytes(base().SerializeToString())
    assert _refusal(tmp_path / "m.onnx") is None
    assert isinstance(import_model(tmp_path / "m.onnx", fallback="allow"), Imported)


@pytest.mark.parametrize("name", CHANGES)
def test_what_onnxruntime_refuses_is_refused_at_import(tmp_path: Path, name: str) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(broken(name).SerializeToString())
    refusal = _refusal(path)
    try:
        import_model(path, fallback="allow")
        error = None
    except TilecError as raised:
        error = raised
    if name in REFUSED_HERE_ALONE:
        assert refusal is None
        assert error is not None
    elif name in ACCEPTED_HERE_ALONE:
        assert refusal is not None
        assert error is None
    else:
        assert (error is None) == (refusal is None), (refusal, error)
    if error is not None:
        assert error.exit_code in (2, 5)
        assert error.place is not None
        assert SAID.get(name, "") in str(error)


def test_every_message_is_of_a_change() -> None:
    assert {*SAID, *REFUSED_HERE_ALONE, *ACCEPTED_HERE_ALONE} <= CHANGES.keys()


def _refusal(path: Path) -> str | None:
    """What onnxruntime says against a model; None where it opens it."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return str(error)
    return None
