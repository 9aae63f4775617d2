"""Tiny ONNX models for sessions."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def value(name, *shape, type_=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type_, list(shape))


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def model(nodes, inputs, outputs, initializers=(), opset=17, **about):
    graph = helper.make_graph(nodes, about.pop("graph_name", "g"), inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **about)


def affine(batch=3):
    """y = 2 x + b, where b has the default 1 and may be fed."""
    nodes = [helper.make_node("Mul", ["x", "two"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"])]
    inputs = [value("x", batch, 2), value("b", 2)]
    weights = [constant("two", np.float32(2)), constant("b", np.ones(2, np.float32))]
    proto = model(nodes, inputs, [value("y", batch, 2)], weights, producer_name="tests", graph_name="affine")
    proto.doc_string = "twice and one"
    proto.model_version = 7
    helper.set_model_props(proto, {"owner": "tests"})
    return proto


def two_inputs():
    """s = a + c over a symbolic batch, p = a * c."""
    nodes = [helper.make_node("Add", ["a", "c"], ["s"]), helper.make_node("Mul", ["a", "c"], ["p"])]
    inputs = [value("a", "batch", 4), value("c", "batch", 4)]
    proto = model(nodes, inputs, [value("s", "batch", 4), value("p", "batch", 4)])
    proto.model_version = 1
    return proto


def external(folder):
    """y = x + w, with w in a file beside the model."""
    proto = model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [value("x", 4096)],
        [value("y", 4096)],
        [constant("w", np.arange(4096, dtype=np.float32))],
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.onnx"
    onnx.save_model(proto, str(path), save_as_external_data=True, location="model.data", size_threshold=0)
    return path


def selection():
    """Boxes that a threshold keeps: how many is only known when it runs."""
    nodes = [
        helper.make_node("Relu", ["scores"], ["positive"]),
        helper.make_node("NonMaxSuppression", ["boxes", "positive", "most", "iou"], ["kept"]),
    ]
    weights = [constant("most", np.array([10], np.int64)), constant("iou", np.array([0.5], np.float32))]
    inputs = [value("boxes", 1, "n", 4), value("scores", 1, 1, "n")]
    return model(nodes, inputs, [value("kept", None, 3, type_=TensorProto.INT64)], weights)


def words():
    """Text in, text out, beside a number."""
    nodes = [
        helper.make_node("StringConcat", ["text", "text"], ["twice"]),
        helper.make_node("Mul", ["x", "x"], ["y"]),
    ]
    inputs = [value("text", "n", type_=TensorProto.STRING), value("x", 3)]
    return model(nodes, inputs, [value("twice", "n", type_=TensorProto.STRING), value("y", 3)], opset=20)


def pieces():
    """A sequence in, a sequence out."""
    sequence = helper.make_tensor_sequence_value_info
    node = helper.make_node("SequenceInsert", ["s", "x"], ["t"])
    inputs = [sequence("s", TensorProto.FLOAT, None), value("x", 2)]
    return model([node], inputs, [sequence("t", TensorProto.FLOAT, None)])


def encoder(channels=32, heads=2, longest=64):
    """A transformer layer over tokens: positions from a table of `longest`, attention, LayerNorm, Gelu."""
    generator = np.random.default_rng(1)
    weights, nodes = [], []

    def weight(name, *shape, scale=0.2):
        weights.append(constant(name, (scale * generator.standard_normal(shape)).astype(np.float32)))
        return name

    def add(op, *inputs, **attributes):
        name = f"{op.lower()}_{len(nodes)}"
        nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def numbers(name, *values):
        weights.append(constant(name, np.array(values, np.int64)))
        return name

    def split(x):
        return add("Transpose", add("Reshape", x, "split"), perm=[0, 2, 1, 3])

    one, zero, axis = numbers("one", 1), numbers("zero", 0), numbers("axis", 0)
    numbers("split", 0, 0, heads, channels // heads), numbers("joined", 0, 0, channels)
    length = add("Slice", add("Shape", "ids"), one, numbers("two", 2))
    words = add("Gather", weight("words", 100, channels), "ids")
    x = add("Add", words, add("Slice", weight("positions", longest, channels), zero, length, axis))
    q, k, v = (split(add("MatMul", x, weight(f"w{name}", channels, channels))) for name in "qkv")
    scores = add("Mul", add("MatMul", q, add("Transpose", k, perm=[0, 1, 3, 2])), weight("scale", 1))
    mixed = add("MatMul", add("Softmax", scores, axis=-1), v)
    joined = add("Reshape", add("Transpose", mixed, perm=[0, 2, 1, 3]), "joined")
    x = add("Add", x, joined)
    x = add("LayerNormalization", x, weight("gain", channels), weight("shift", channels), axis=-1)
    nodes.append(helper.make_node("Gelu", [x], ["y"], name="gelu"))
    inputs = [value("ids", "batch", "seq", type_=TensorProto.INT64)]
    return model(nodes, inputs, [value("y", "batch", "seq", channels)], weights, opset=20)


def convolutions(channels=8):
    """A convolution with a stride, one behind it, their pool and a product, for any number of images."""
    generator = np.random.default_rng(2)

    def weight(name, *shape):
        return constant(name, (0.2 * generator.standard_normal(shape)).astype(np.float32))

    weights = [weight("w1", channels, 3, 3, 3), weight("w2", channels, channels, 3, 3), weight("w3", channels, 10)]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Conv", ["b", "w2"], ["c"], pads=[1, 1, 1, 1], name="second"),
        helper.make_node("GlobalAveragePool", ["c"], ["d"], name="pool"),
        helper.make_node("Flatten", ["d"], ["e"], name="flat"),
        helper.make_node("MatMul", ["e", "w3"], ["y"], name="classes"),
    ]
    return model(nodes, [value("x", "batch", 3, 16, 16)], [value("y", "batch", 10)], weights)
