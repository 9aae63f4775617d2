"""Random recurrences with open sizes: kinds, directions, layers, states, lengths, activations, what follows them."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
FUNCTIONS = {"RNN": ("Relu",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Softsign")}


def recurrence(seed: int, path: Path) -> Path:
    """The ONNX file of a seed: `x[t, n, width]`, in some `lengths[n]` and `first[.., n, hidden]`; the last output is
    `y`."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    kind, hidden, width = draw.choice(list(GATES)), draw.choice([3, 8]), draw.choice([1, 5])
    direction = draw.choice(["forward", "reverse", "bidirectional"])
    ways, scale = (2 if direction == "bidirectional" else 1), draw.choice([1, 4])
    layers, states = draw.choice([1, 1, 2]), draw.choice(["zero", "computed", "given"])
    batch = draw.choice(["n", "n", 1])
    lengths = draw.random() < 0.25
    weights: list[TensorProto] = []
    nodes: list[NodeProto] = []
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["t", batch, width])]
    outputs = []

    def constant(array: object) -> str:
        weights.append(numpy_helper.from_array(np.asarray(array), f"w{len(weights)}"))
        return weights[-1].name

    def weight(*shape: int) -> str:
        return constant((numbers.uniform(-scale, scale, shape) / np.sqrt(hidden)).astype(np.float32))

    def add(op: str, read: list[str], made: list[str], **attributes: object) -> str:
        nodes.append(helper.make_node(op, read, made, name=f"node_{made[0]}", **attributes))
        return made[0]

    if lengths:
        inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, [batch]))
    if states == "given":
        shape = [ways * layers, batch, hidden]
        inputs.append(helper.make_tensor_value_info("first", TensorProto.FLOAT, shape))
    above = "x"
    for layer in range(layers):
        rows = GATES[kind] * hidden
        read = [above, weight(ways, rows, ways * hidden if layer else width), weight(ways, rows, hidden)]
        read += [weight(ways, 2 * rows) if draw.random() < 0.8 else "", "lengths" if lengths else ""]
        if states == "given":
            ends = [constant(np.array([each])) for each in (ways * layer, ways * (layer + 1), 0)]
            read.append(add("Slice", ["first", *ends], [f"first{layer}"]))
        elif states == "computed":
            length = add("Shape", [above], [f"batch{layer}"], start=1, end=2)
            parts = [constant(np.array([ways])), length, constant(np.array([hidden]))]
            shape = add("Concat", parts, [f"shape{layer}"], axis=0)
            read.append(add("ConstantOfShape", [shape], [f"first{layer}"]))
        if kind == "LSTM" and states != "zero":
            read.append(read[-1])
        made = [f"h{layer}", f"last{layer}", *([f"cell{layer}"] if kind == "LSTM" else [])]
        attributes: dict[str, object] = {"linear_before_reset": draw.choice([0, 1])} if kind == "GRU" else {}
        if draw.random() < 0.2:
            attributes["activations"] = FUNCTIONS[kind] * ways
        if draw.random() < 0.2:
            attributes["clip"] = draw.choice([0.5, 3.0])
        while not read[-1]:
            read.pop()
        add(kind, read, made, hidden_size=hidden, direction=direction, **attributes)
        joined = add("Transpose", [made[0]], [f"turned{layer}"], perm=[0, 2, 1, 3])
        above = add("Reshape", [joined, constant(np.array([0, 0, -1]))], [f"above{layer}"])
        outputs += [helper.make_tensor_value_info(each, TensorProto.FLOAT, [ways, batch, hidden]) for each in made[1:]]
    match draw.choice(["all", "last", "mean", "scores"]):
        case "all":
            shape = ["t", batch, ways * hidden]
            add("Identity", [above], ["y"])
        case "last":
            shape = [batch, ways * hidden]
            add("Gather", [above, constant(np.int64(-1))], ["y"], axis=0)
        case "mean":
            shape = [batch, ways * hidden]
            add("ReduceMean", [above, constant(np.array([0]))], ["y"], keepdims=0)
        case _:
            shape = ["t", batch, 7]
            add("LogSoftmax", [add("MatMul", [above, weight(ways * hidden, 7)], ["scores"])], ["y"])
    outputs.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, shape))
    graph = helper.make_graph(nodes, "recurrence", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), str(path))
    return path
