"""Tiny ONNX models, sound and broken ones."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def value(name: str, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))


def weight(name: str, *shape: int) -> onnx.TensorProto:
    generator = np.random.default_rng(len(name))
    return numpy_helper.from_array(generator.standard_normal(shape).astype(np.float32), name)


def save(path: Path, nodes, inputs, outputs, initializers=(), opset: int = 17) -> Path:
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())
    return path


def mlp(path: Path, batch: int | str = 4) -> Path:
    """Two small layers: y = relu(x @ w1 + b1) @ w2."""
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h0"], name="first"),
        helper.make_node("Add", ["h0", "b1"], ["h1"], name="bias"),
        helper.make_node("Relu", ["h1"], ["h2"], name="relu"),
        helper.make_node("MatMul", ["h2", "w2"], ["y"], name="second"),
    ]
    weights = [weight("w1", 16, 32), weight("b1", 32), weight("w2", 32, 8)]
    return save(path, nodes, [value("x", batch, 16)], [value("y", batch, 8)], weights)


def unary(path: Path, op: str, domain: str = "") -> Path:
    nodes = [helper.make_node(op, ["x"], ["y"], name="strange", domain=domain)]
    return save(path, nodes, [value("x", 4)], [value("y", 4)])


def cycle(path: Path) -> Path:
    nodes = [
        helper.make_node("Add", ["x", "b"], ["a"], name="one"),
        helper.make_node("Relu", ["a"], ["b"], name="two"),
    ]
    return save(path, nodes, [value("x", 4)], [value("b", 4)])


def duplicate(path: Path) -> Path:
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], name="one"),
        helper.make_node("Sigmoid", ["x"], ["y"], name="two"),
    ]
    return save(path, nodes, [value("x", 4)], [value("y", 4)])


def undefined(path: Path) -> Path:
    nodes = [helper.make_node("Add", ["x", "wieght"], ["y"], name="add")]
    return save(path, nodes, [value("x", 4)], [value("y", 4)], [weight("weight", 4)])


def mismatch(path: Path) -> Path:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    return save(path, nodes, [value("x", 4, 16)], [value("y", 4, 8)], [weight("w", 15, 8)])


def outside(path: Path) -> Path:
    """A model whose weights lie in a file outside its folder."""
    mlp(path)
    model = onnx.load(str(path))
    (path.parent.parent / "weights.bin").write_bytes(bytes(16 * 32 * 4))
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../weights.bin")
    path.write_bytes(model.SerializeToString())
    return path


def external(path: Path) -> Path:
    """A model whose weights lie in a file beside it."""
    mlp(path)
    model = onnx.load(str(path))
    onnx.save_model(model, str(path), save_as_external_data=True, location=f"{path.stem}.data", size_threshold=0)
    return path
