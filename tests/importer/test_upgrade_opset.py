"""Models of opsets before 7: those that ONNX's converter understands compile, the others are left alone."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.importer.reference import normal, run
from tilec.errors import UnsupportedError
from tilec.importer import import_model
from tilec.importer.loader import load_model
from tilec.importer.upgrade_opset import modern

X = normal(2, 3, 4)


def model(
    path: Path, node: onnx.NodeProto, weights: dict[str, Any] | None = None, opset: int = 6, ir_version: int = 3
) -> Path:
    """A model of x [2, 3, 4] and weights that are inputs too, as old files have them."""
    weights = weights or {}
    infos = [helper.make_tensor_value_info(n, 1, a.shape) for n, a in {"x": X, **weights}.items()]
    if ir_version > 3:
        infos = infos[:1]
    tensors = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", 1, X.shape)], tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)
    path.write_bytes(made.SerializeToString())
    return path


@pytest.mark.parametrize(
    ("node", "weights", "expected"),
    [
        (helper.make_node("Tanh", ["x"], ["y"], consumed_inputs=[0]), {}, np.tanh(X)),
        (
            helper.make_node("Mul", ["x", "w"], ["y"], broadcast=1),
            {"w": normal(3, 4, seed=1)},
            X * normal(3, 4, seed=1),
        ),
        (helper.make_node("Dropout", ["x"], ["y"], is_test=1), {}, X),
        (
            helper.make_node("PRelu", ["x", "w"], ["y"]),
            {"w": np.float32([0.5])},
            np.where(X < 0, X * 0.5, X),
        ),
    ],
)
def test_old_models_compile(tmp_path: Path, node: onnx.NodeProto, weights: dict[str, Any], expected: Any) -> None:
    opset = 1 if node.op_type == "Tanh" else 6
    path = model(tmp_path / "m.onnx", node, weights, opset)
    np.testing.assert_allclose(run(import_model(path), tmp_path, {"x": X})[0], expected, rtol=1e-5)


def test_an_output_without_a_shape_is_converted_as_well(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", helper.make_node("Transpose", ["x"], ["y"], perm=[0, 1, 2]), opset=1)
    proto = onnx.load(path)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    onnx.save(proto, path)
    np.testing.assert_allclose(run(import_model(path), tmp_path, {"x": X})[0], X)


@pytest.mark.parametrize(
    ("node", "weights", "ir_version"),
    [
        (helper.make_node("PRelu", ["x", "w"], ["y"]), {"w": normal(3)}, 3),
        (helper.make_node("Mul", ["x", "w"], ["y"], broadcast=1), {"w": normal(3, 4)}, 4),
        (helper.make_node("Dropout", ["x"], ["y"], is_test=0), {}, 3),
        (helper.make_node("Strange", ["x"], ["y"]), {}, 3),
    ],
)
def test_what_the_converter_does_not_understand_is_left_alone(
    tmp_path: Path, node: onnx.NodeProto, weights: dict[str, Any], ir_version: int
) -> None:
    path = model(tmp_path / "m.onnx", node, weights, ir_version=ir_version)
    with pytest.raises(UnsupportedError, match="the model uses opset 6; tilec reads opsets 7 to 26"):
        import_model(path)


def test_branches_are_left_alone(tmp_path: Path) -> None:
    body = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["z"])], "b", [], [helper.make_tensor_value_info("z", 1, X.shape)]
    )
    path = model(tmp_path / "m.onnx", helper.make_node("If", ["x"], ["y"], then_branch=body, else_branch=body))
    loaded = load_model(path)
    assert modern(loaded) is loaded


def test_newer_models_are_left_alone(tmp_path: Path) -> None:
    loaded = load_model(model(tmp_path / "m.onnx", helper.make_node("Tanh", ["x"], ["y"]), opset=7))
    assert modern(loaded) is loaded
