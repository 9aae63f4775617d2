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
    return save(path, nodes, [value("x", 4)], [onnx.ValueInfoProto(name="y")])


def selection(path: Path) -> Path:
    """Boxes chosen by NonMaxSuppression, whose number depends on the data, from scores that are computed before."""
    nodes = [
        helper.make_node("Sigmoid", ["logits"], ["scores"], name="score"),
        helper.make_node("NonMaxSuppression", ["boxes", "scores", "most"], ["chosen"], name="choose"),
        helper.make_node("Gather", ["chosen", "last"], ["y"], name="pick", axis=1),
    ]
    constants = [numpy_helper.from_array(np.array(5), "most"), numpy_helper.from_array(np.array(2), "last")]
    inputs = [value("boxes", 1, 12, 4), value("logits", 1, 2, 12)]
    return save(path, nodes, inputs, [helper.make_tensor_value_info("y", TensorProto.INT64, ["n"])], constants)


def doubling(path: Path) -> Path:
    """A Loop that doubles its state until the sum passes a limit: its trip count depends on the data."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "state"], ["next"]),
            helper.make_node("ReduceSum", ["next"], ["sum"], keepdims=0),
            helper.make_node("Less", ["sum", "limit"], ["again"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            value("state", 4),
        ],
        [helper.make_tensor_value_info("again", TensorProto.BOOL, []), value("next", 4)],
    )
    nodes = [
        helper.make_node("Exp", ["x"], ["start"], name="exp"),
        helper.make_node("Loop", ["", "on", "start"], ["grown"], name="loop", body=body),
        helper.make_node("Add", ["grown", "start"], ["y"], name="add"),
    ]
    constants = [numpy_helper.from_array(np.array(True), "on"), numpy_helper.from_array(np.float32(99), "limit")]
    return save(path, nodes, [value("x", 4)], [value("y", 4)], constants)


def contributed(path: Path) -> Path:
    """An operator of another domain between two that compile."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        helper.make_node("Binarizer", ["a"], ["c"], name="binarizer", domain="ai.onnx.ml", threshold=0.5),
        helper.make_node("Softmax", ["c"], ["y"], name="softmax"),
    ]
    path = save(path, nodes, [value("x", 3, 8)], [value("y", 3, 6)], [weight("w", 8, 6)])
    return _importing(path, "ai.onnx.ml", 3)


def distances(path: Path) -> Path:
    """An operator of another domain with a weight."""
    nodes = [
        helper.make_node("Exp", ["x"], ["a"], name="exp"),
        helper.make_node("CDist", ["a", "w"], ["y"], name="distance", domain="com.microsoft"),
    ]
    path = save(path, nodes, [value("x", 3, 8)], [value("y", 3, 6)], [weight("w", 6, 8)])
    return _importing(path, "com.microsoft", 1)


def _importing(path: Path, domain: str, version: int) -> Path:
    """The model with another domain of operators."""
    model = onnx.load(str(path))
    model.opset_import.append(helper.make_opsetid(domain, version))
    path.write_bytes(model.SerializeToString())
    return path


def noisy(path: Path) -> Path:
    """An output with random numbers in it, and one without."""
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["noise"], name="noise"),
        helper.make_node("Add", ["x", "noise"], ["y"], name="add"),
        helper.make_node("Exp", ["x"], ["z"], name="exp"),
    ]
    return save(path, nodes, [value("x", 5)], [value("y", 5), value("z", 5)])


def given_sequence(path: Path) -> Path:
    """An input that is a sequence, of which nothing can be drawn at random."""
    nodes = [
        helper.make_node("SequenceLength", ["items"], ["n"], name="length"),
        helper.make_node("Exp", ["x"], ["y"], name="exp"),
    ]
    items = helper.make_tensor_sequence_value_info("items", TensorProto.FLOAT, None)
    return save(path, nodes, [items, value("x", 4)], [helper.make_tensor_value_info("n", 7, []), value("y", 4)])


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
