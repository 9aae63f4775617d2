"""Small models with states: caches of keys and values that a call extends by its rows."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, GROUPS, SIZE = 4, 2, 8

I64, F32 = TensorProto.INT64, TensorProto.FLOAT


def attention(path: Path) -> Path:
    """Causal attention of grouped queries whose valid tokens a mask tells, as decoders of language models have it;
    batch, new tokens, all tokens and the room of the caches are open."""
    weights = np.random.default_rng(0).standard_normal((SIZE * HEADS, SIZE * (HEADS + 2 * GROUPS))).astype("f4") / 4
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["qkv"]),
        helper.make_node("ReduceSum", ["mask", "last_axis"], ["valid"], keepdims=0),
        helper.make_node("Sub", ["valid", "one"], ["last"]),
        helper.make_node("Cast", ["last"], ["lengths"], to=TensorProto.INT32),
        helper.make_node("Shape", ["mask"], ["mask_shape"]),
        helper.make_node("Gather", ["mask_shape", "one_place"], ["total"], axis=0),
        helper.make_node("Cast", ["total"], ["total32"], to=TensorProto.INT32),
        helper.make_node(
            "GroupQueryAttention",
            ["qkv", "", "", "past_k", "past_v", "lengths", "total32"],
            ["y", "present_k", "present_v"],
            domain="com.microsoft",
            num_heads=HEADS,
            kv_num_heads=GROUPS,
        ),
    ]
    constants = {"w": weights, "last_axis": np.array([1]), "one": np.array(1), "one_place": np.array(1)}
    cache = ["b", GROUPS, "room", SIZE]
    inputs = [("x", F32, ["b", "s", SIZE * HEADS]), ("mask", I64, ["b", "t"]), ("past_k", F32, cache)]
    inputs += [("past_v", F32, cache)]
    outputs = [("y", F32, ["b", "s", SIZE * HEADS]), ("present_k", F32, cache), ("present_v", F32, cache)]
    return _saved(path, nodes, inputs, outputs, constants)


VOCABULARY = 24


def decoder(path: Path) -> Path:
    """A decoder of one layer: tokens to logits, called as onnxruntime-genai calls its inputs and outputs."""
    model = onnx.load(attention(path))
    names = {"x": "embedded", "mask": "attention_mask", "past_k": "past_key_values.0.key"}
    names |= {"past_v": "past_key_values.0.value", "present_k": "present.0.key", "present_v": "present.0.value"}
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    generator = np.random.default_rng(1)
    table = generator.standard_normal((VOCABULARY, SIZE * HEADS)).astype("f4")
    head = generator.standard_normal((SIZE * HEADS, VOCABULARY)).astype("f4")
    model.graph.initializer.extend(numpy_helper.from_array(w, n) for n, w in (("table", table), ("head", head)))
    model.graph.node.insert(0, helper.make_node("Gather", ["table", "input_ids"], ["embedded"]))
    model.graph.node.append(helper.make_node("Add", ["y", "embedded"], ["hidden"]))
    model.graph.node.append(helper.make_node("MatMul", ["hidden", "head"], ["logits"]))
    for port in (*model.graph.input, *model.graph.output):
        port.name = {"x": "input_ids", "y": "logits"}.get(port.name, names.get(port.name, port.name))
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("input_ids", I64, ["b", "s"]))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("logits", F32, ["b", "s", VOCABULARY]))
    onnx.save(model, path)
    return path


def growing(path: Path) -> Path:
    """Attention whose keys and values are those of calls before with those of this one behind them."""
    width = SIZE * HEADS
    weights = np.random.default_rng(0).standard_normal((width, 2 * width)).astype("f4") / 4
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["kv"]),
        helper.make_node("Split", ["kv"], ["k", "v"], axis=2, num_outputs=2),
        helper.make_node("Concat", ["past_k", "k"], ["present_k"], axis=1),
        helper.make_node("Concat", ["past_v", "v"], ["present_v"], axis=1),
        helper.make_node("Transpose", ["present_k"], ["columns"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "columns"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "present_v"], ["y"]),
    ]
    new, past, present = ["b", "new", width], ["b", "past", width], ["b", "past + new", width]
    inputs = [("x", F32, new), ("past_k", F32, past), ("past_v", F32, past)]
    outputs = [("y", F32, new), ("present_k", F32, present), ("present_v", F32, present)]
    return _saved(path, nodes, inputs, outputs, {"w": weights})


def window(path: Path) -> Path:
    """Rows 2 and 3 of a state become those that are given; the mean of all is told."""
    nodes = [
        helper.make_node("Slice", ["past", "zero", "two", "axis"], ["before"]),
        helper.make_node("Slice", ["past", "four", "end", "axis"], ["behind"]),
        helper.make_node("Mul", ["rows", "rows"], ["squares"]),
        helper.make_node("Concat", ["before", "squares", "behind"], ["present"], axis=1),
        helper.make_node("ReduceMean", ["present"], ["mean"], keepdims=0),
    ]
    numbers = {"zero": 0, "two": 2, "four": 4, "end": 2**40, "axis": 1}
    constants = {name: np.array([number]) for name, number in numbers.items()}
    inputs = [("past", F32, [3, 6, 5]), ("rows", F32, [3, 2, 5])]
    return _saved(path, nodes, inputs, [("present", F32, [3, 6, 5]), ("mean", F32, [])], constants)


SCATTERS = ("run", "places", "elements")


def scattered(path: Path, form: str) -> Path:
    """New rows go along the third dimension to where places say, as caches of fixed size take them: those behind a
    first one, any, or any for each element; the sum of all rows is told."""
    take, put = [2, 0, 1, 3], [1, 2, 0, 3]
    nodes = [
        helper.make_node("Shape", ["rows"], ["shape"]),
        helper.make_node("Gather", ["shape", "two"], ["count"], axis=0),
        helper.make_node("Range", ["nought", "count", "step"], ["numbers"]),
        helper.make_node("Gather", ["places", "nought"], ["first"], axis=0),
        helper.make_node("Add", ["numbers", "first"], ["behind"]),
        helper.make_node("Unsqueeze", ["behind" if form == "run" else "places", "last"], ["column"]),
        helper.make_node("Transpose", ["past"], ["old"], perm=take),
        helper.make_node("Transpose", ["rows"], ["new"], perm=take),
        helper.make_node("ScatterND", ["old", "column", "new"], ["mixed"]),
        helper.make_node("Transpose", ["mixed"], ["present"], perm=put),
    ]
    if form == "elements":
        nodes[5:] = [
            helper.make_node("Unsqueeze", ["places", "last"], ["column"]),
            helper.make_node("Expand", ["column", "shape"], ["each"]),
            helper.make_node("ScatterElements", ["past", "each", "rows"], ["present"], axis=2),
        ]
    nodes.append(helper.make_node("ReduceSum", ["present", "two_axes"], ["sums"]))
    numbers = {"two": 2, "nought": 0, "step": 1, "last": [-1], "two_axes": [1, 3]}
    constants = {name: np.array(number, np.int64) for name, number in numbers.items()}
    inputs = [("past", F32, ["b", 2, "room", 3]), ("rows", F32, ["b", 2, "s", 3]), ("places", I64, ["s"])]
    return _saved(
        path, nodes, inputs, [("present", F32, ["b", 2, "room", 3]), ("sums", F32, ["b", 1, "room", 1])], constants
    )


def read_early(path: Path) -> Path:
    """As `window`, but something else reads the state as it was before."""
    model = onnx.load(window(path))
    model.graph.node.append(helper.make_node("Neg", ["past"], ["negative"]))
    model.graph.output.append(helper.make_tensor_value_info("negative", F32, [3, 6, 5]))
    onnx.save(model, path)
    return path


def _saved(path, nodes, inputs, outputs, constants) -> Path:
    infos = [[helper.make_tensor_value_info(*port) for port in ports] for ports in (inputs, outputs)]
    weights = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(
        helper.make_model(helper.make_graph(nodes, "m", *infos, weights), opset_imports=opsets, ir_version=9), path
    )
    return path
