"""Small sound inputs that mistakes are made in: models, devices, recipes and the artifacts of one compilation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Nodes = Sequence[Any]


def value(name: str, *shape: int | str, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, list(shape))


def floats(name: str, *shape: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32), name)


def ints(name: str, *values: int) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model(
    nodes: Nodes, inputs: Nodes, outputs: Nodes, initializers: Nodes = (), functions: Nodes = (), opset: int = 20
) -> onnx.ModelProto:
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(initializers))
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid("own", 1)] if functions else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=list(functions))


def mlp() -> onnx.ModelProto:
    """Two layers and a softmax, batch unknown."""
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h1"], transB=0, alpha=0.5),
        helper.make_node("LeakyRelu", ["h1"], ["h2"], alpha=0.1),
        helper.make_node("MatMul", ["h2", "w2"], ["h3"]),
        helper.make_node("Softmax", ["h3"], ["y"], axis=-1),
    ]
    weights = [floats("w1", 8, 12), floats("b1", 12), floats("w2", 12, 5)]
    return model(nodes, [value("x", "batch", 8)], [value("y", "batch", 5)], weights)


def vision() -> onnx.ModelProto:
    """Convolution, normalisation, pooling, padding, resizing and a reshape that is computed."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, 1], group=2),
        helper.make_node("BatchNormalization", ["c", "s", "s2", "m", "v"], ["n"], epsilon=1e-5),
        helper.make_node("MaxPool", ["n"], ["p"], kernel_shape=[2, 2], strides=[1, 1], ceil_mode=1),
        helper.make_node("Pad", ["p", "pads"], ["q"], mode="reflect"),
        helper.make_node("Resize", ["q", "", "scales"], ["r"], mode="linear"),
        helper.make_node("Shape", ["r"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["first"], axis=0),
        helper.make_node("Concat", ["first", "minus"], ["target"], axis=0),
        helper.make_node("Reshape", ["r", "target"], ["flat"]),
        helper.make_node("ReduceMean", ["flat", "one"], ["y"], keepdims=1),
    ]
    stats = [numpy_helper.from_array(np.ones(4, np.float32), name) for name in ("s", "s2", "m", "v")]
    scales = numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales")
    constants = [ints("pads", 0, 0, 1, 1, 0, 0, 1, 1), ints("zero", 0), ints("minus", -1), ints("one", 1), scales]
    return model(nodes, [value("x", 1, 4, 9, 9)], [value("y", 1, 1)], [floats("w", 4, 2, 3, 3), *stats, *constants])


def indexing() -> onnx.ModelProto:
    """Slices, tiles, gathers, one-hot, top-k, splits: operators that take sizes from small tensors."""
    nodes = [
        helper.make_node("Slice", ["x", "starts", "ends", "axes", "steps"], ["a"]),
        helper.make_node("Tile", ["a", "times"], ["b"]),
        helper.make_node("Expand", ["b", "wide"], ["c"]),
        helper.make_node("Split", ["c", "parts"], ["d", "e"], axis=1),
        helper.make_node("Concat", ["d", "e"], ["f"], axis=1),
        helper.make_node("Transpose", ["f"], ["g"], perm=[1, 0]),
        helper.make_node("GatherElements", ["g", "where"], ["h"], axis=0),
        helper.make_node("ConstantOfShape", ["size"], ["z"], value=helper.make_tensor("", 1, [1], [2.0])),
        helper.make_node("Range", ["low", "high", "step"], ["numbers"]),
        helper.make_node("Cast", ["numbers"], ["line"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["h", "z"], ["i"]),
        helper.make_node("Mul", ["i", "line"], ["j"]),
        helper.make_node("CumSum", ["j", "low"], ["y"], exclusive=1),
        helper.make_node("TopK", ["y", "k"], ["best", "at"], axis=1, largest=1),
    ]
    scalar = [
        numpy_helper.from_array(np.array(n, np.int64), name) for name, n in (("low", 0), ("high", 4), ("step", 1))
    ]
    constants = [
        ints("starts", 0, 0),
        ints("ends", 2, 4),
        ints("axes", 0, 1),
        ints("steps", 1, 2),
        ints("times", 2, 2),
        ints("wide", 4, 4),
        ints("parts", 1, 3),
        ints("size", 4, 4),
        ints("k", 2),
        numpy_helper.from_array(np.array([[0, 1, 2, 3]] * 4, np.int64), "where"),
    ]
    outputs = [value("y", 4, 4), value("best", 4, 2), value("at", 4, 2, kind=TensorProto.INT64)]
    return model(nodes, [value("x", 2, 4)], outputs, [*scalar, *constants])


def nested() -> onnx.ModelProto:
    """A function that calls a function, an `If` and a `Loop`."""
    inner = helper.make_function("own", "twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], _OPSETS)
    outer = helper.make_function(
        "own",
        "fourfold",
        ["a"],
        ["c"],
        [
            helper.make_node("twice", ["a"], ["b"], domain="own"),
            helper.make_node("twice", ["b"], ["c"], domain="own"),
        ],
        [*_OPSETS, helper.make_opsetid("own", 1)],
    )
    branch = [
        helper.make_graph([helper.make_node(op, ["h"], [op])], op, [], [value(op, 2, 3)]) for op in ("Relu", "Neg")
    ]
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Mul", ["s", "s"], ["t"])],
        "body",
        [value("i", kind=TensorProto.INT64), value("go", kind=TensorProto.BOOL), value("s", 2, 3)],
        [value("on", kind=TensorProto.BOOL), value("t", 2, 3)],
    )
    nodes = [
        helper.make_node("fourfold", ["x"], ["h"], domain="own"),
        helper.make_node("If", ["yes"], ["chosen"], then_branch=branch[0], else_branch=branch[1]),
        helper.make_node("Loop", ["trips", "yes", "chosen"], ["y"], body=body),
    ]
    constants = [
        numpy_helper.from_array(np.array(True), "yes"),
        numpy_helper.from_array(np.array(3, np.int64), "trips"),
    ]
    return model(nodes, [value("x", 2, 3)], [value("y", 2, 3)], constants, [inner, outer])


_OPSETS = [helper.make_opsetid("", 20)]


def attention() -> onnx.ModelProto:
    """Einsum, normalisation, masks, quantisation, a recurrence."""
    nodes = [
        helper.make_node("LayerNormalization", ["x", "scale"], ["n"], axis=-1),
        helper.make_node("Einsum", ["n", "n"], ["s"], equation="bik,bjk->bij"),
        helper.make_node("Trilu", ["s"], ["t"], upper=0),
        helper.make_node("QuantizeLinear", ["t", "q", "point"], ["u"]),
        helper.make_node("DequantizeLinear", ["u", "q", "point"], ["d"]),
        helper.make_node("GRU", ["d", "wg", "rg"], ["", "y"], hidden_size=3, direction="forward"),
    ]
    constants = [
        numpy_helper.from_array(np.ones(6, np.float32), "scale"),
        numpy_helper.from_array(np.array(0.1, np.float32), "q"),
        numpy_helper.from_array(np.array(3, np.int8), "point"),
        floats("wg", 1, 9, 4),
        floats("rg", 1, 9, 3),
    ]
    return model(nodes, [value("x", 2, 4, 6)], [value("y", 1, 4, 3)], constants)


MODELS: tuple[Callable[[], onnx.ModelProto], ...] = (mlp, vision, indexing, nested, attention)


def external(folder: Path, weights: str = "weights.bin") -> onnx.ModelProto:
    """`mlp` with its largest weight in a file of `folder`."""
    found = mlp()
    tensor = found.graph.initializer[0]
    (folder / weights).write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, entry in (("location", weights), ("offset", "0"), ("length", str(8 * 12 * 4))):
        tensor.external_data.add(key=key, value=entry)
    return found
