"""Recurrences that are written as nodes, loops and operators."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from tests.outside.recipes.sketch import Sketch

F32, I32, I64 = np.float32, np.int32, np.int64


def _gru_cell(s: Sketch, x: str, state: str, given: int, width: int) -> str:
    """A cell of PyTorch: two products, cut into three parts of a width that is computed from their shapes."""
    gates = []
    for part, size in ((x, given), (state, width)):
        product = s.op("Gemm", part, s.weight(3 * width, size), s.weight(3 * width), transB=1)
        whole = s.op("Gather", s.op("Shape", product), s.const([1]), axis=0)
        third = s.op("Div", s.op("Add", whole, s.const([2])), s.const([3]))
        ends = [s.const([0]), *(s.op("Mul", third, s.const([count])) for count in (1, 2, 3))]
        gates.append([s.op("Slice", product, *ends[n : n + 2], s.const([1])) for n in range(3)])
    reset, update = (s.op("Sigmoid", s.op("Add", *pair)) for pair in zip(*(each[:2] for each in gates), strict=True))
    new = s.op("Tanh", s.op("Add", gates[0][2], s.op("Mul", reset, gates[1][2])))
    fresh = s.op("Mul", s.op("Sub", s.const(1.0), update), new)
    return s.op("Add", fresh, s.op("Mul", update, state))


def next_letter() -> Sketch:
    """One step of a decoder: the last code of a prefix, two cells, attention to what is kept (romanizer of names)."""
    s = Sketch(17)
    width = 12
    prefix, memory = s.input("prefix", I64, "batch", "tgt_len"), s.input("memory", F32, "batch", "src_len", width)
    mask, hidden = s.input("src_mask", np.bool_, "batch", "src_len"), s.input("hidden", F32, "batch", 2, width)
    last = s.op("Gather", prefix, s.const(-1), axis=1)
    x, states = s.op("Gather", s.weight(20, width, scale=1), last), []
    for layer in (0, 1):
        x = _gru_cell(s, x, s.op("Gather", hidden, s.const(layer), axis=1), width, width)
        states.append(s.op("Unsqueeze", x, s.const([1])))
    query = s.op("Unsqueeze", s.op("Gemm", x, s.weight(width, width), s.weight(width), transB=1), s.const([1]))
    scores = s.op("MatMul", query, s.op("Transpose", memory, perm=[0, 2, 1]))
    seen = s.op("Cast", s.op("Unsqueeze", mask, s.const([1])), to=9)
    shares = s.op("Softmax", s.op("Where", seen, scores, s.const(-1e9)), axis=-1)
    heard = s.op("Squeeze", s.op("MatMul", shares, memory), s.const([1]))
    logits = s.op("Gemm", s.op("Concat", x, heard, axis=1), s.weight(20, 2 * width), s.weight(20), transB=1)
    s.output(s.op("LogSoftmax", logits, axis=-1), "logprobs", F32, "batch", 20)
    s.output(s.op("Concat", *states, axis=1), "hidden_out", F32, "batch", 2, width)
    return s


def unrolled_cells() -> Sketch:
    """Columns of a picture through LSTM cells, each step a row of nodes (captchas, a CRNN of nine hundred nodes)."""
    s = Sketch(17)
    width, steps = 8, 5
    x = s.conv(s.input("image", F32, "batch", 3, 12, 4 * steps), 3, 8, 3, 3, pads=[1, 1, 1, 1], strides=[2, 2])
    x = s.op("MaxPool", s.op("Relu", x), kernel_shape=[6, 2], strides=[6, 2])
    x = s.op("Transpose", s.reshape(x, s.size(x, 0), 8, steps), perm=[2, 0, 1])
    inner, outer = (s.weight(4 * width, width) for _ in "xh")
    bias, other = s.weight(4 * width), s.weight(4 * width)
    state = memory = s.zeros(s.size(x, 1), width)
    found = []
    for step in range(steps):
        column = s.op("Gather", x, s.const(step), axis=0)
        sums = [
            s.op("Gemm", part, weight, added, transB=1)
            for part, weight, added in ((column, inner, bias), (state, outer, other))
        ]
        enter, forget, cell, leave = s.ops("Split", 4, s.op("Add", *sums), axis=1)
        kept = s.op("Mul", s.op("Sigmoid", forget), memory)
        memory = s.op("Add", kept, s.op("Mul", s.op("Sigmoid", enter), s.op("Tanh", cell)))
        state = s.op("Mul", s.op("Sigmoid", leave), s.op("Tanh", memory))
        found.append(s.op("Unsqueeze", state, s.const([0])))
    s.output(s.linear(s.op("Concat", *found, axis=0), width, 11), "logits", F32, steps, "batch", 11)
    return s


def characters_in_a_loop() -> Sketch:
    """An LSTM as the loop that TensorFlow's converter writes, its last state (vectors of words)."""
    s = Sketch(15)
    given, width = 6, 8
    x = s.input("lstm_input", F32, "unk_0", "unk_1", given)
    rows = s.op("Transpose", x, perm=[1, 0, 2])
    steps = s.op("Cast", s.op("Shape", rows), to=6)
    steps = s.op("Squeeze", s.op("Slice", steps, s.const([0]), s.const([1]), s.const([0])), s.const([0]))
    some = s.op("Less", s.const(0.0), s.op("Cast", steps, to=1))
    trips, going = s.op("Cast", steps, to=7), s.op("And", some, some)
    batch = s.op("Slice", s.op("Cast", s.op("Shape", x), to=6), s.const([0]), s.const([1]), s.const([0]))
    shape = s.op("Cast", s.op("Concat", batch, s.const([width], I32), axis=0), to=7)
    zeros = s.op("Expand", s.const(0.0), shape)
    body = _lstm_body(s, rows, given, width)
    start = (trips, going, s.const(0, I32), zeros, zeros, steps)
    found = s.ops("Loop", 5, *start, body=body)[4]
    last = s.op("Slice", found, s.const([-1]), s.const([2147483647]), s.const([0]))
    s.output(s.op("Squeeze", last, s.const([0])), "lstm_2", F32, "unk_2", width)
    return s


def _lstm_body(s: Sketch, rows: str, given: int, width: int) -> object:
    node = helper.make_node
    inner, outer, bias = s.weight(given, 4 * width), s.weight(width, 4 * width), s.weight(4 * width)
    one = s.const(1, I32)
    nodes: list[NodeProto] = [
        node("Gather", [rows, "count"], ["row"], axis=0),
        node("MatMul", ["row", inner], ["from_row"]),
        node("MatMul", ["state", outer], ["from_state"]),
        node("Add", ["from_row", "from_state"], ["both"]),
        node("Add", ["both", bias], ["sums"]),
        node("Split", ["sums"], ["enter", "forget", "cell", "leave"], axis=1),
        *(node("Sigmoid", [name], [f"{name}_gate"]) for name in ("enter", "forget", "leave")),
        node("Tanh", ["cell"], ["cell_tanh"]),
        node("Mul", ["forget_gate", "memory"], ["kept"]),
        node("Mul", ["enter_gate", "cell_tanh"], ["added"]),
        node("Add", ["kept", "added"], ["memory_out"]),
        node("Tanh", ["memory_out"], ["memory_tanh"]),
        node("Mul", ["leave_gate", "memory_tanh"], ["state_out"]),
        node("Add", ["count", one], ["count_out"]),
        node("Less", ["count_out", "steps"], ["on"]),
        node("And", ["on", "on"], ["going_out"]),
        node("Identity", ["steps"], ["steps_out"]),
        node("Identity", ["state_out"], ["row_out"]),
    ]
    state = ("unk", width)
    inputs = [("trip", I64, ()), ("going", np.bool_, ()), ("count", I32, ())]
    inputs += [("state", F32, state), ("memory", F32, state), ("steps", I32, ())]
    outputs = [("going_out", np.bool_, ()), ("count_out", I32, ()), ("state_out", F32, state)]
    outputs += [("memory_out", F32, state), ("steps_out", I32, ()), ("row_out", F32, state)]
    return s.subgraph(nodes, inputs, outputs)


def reversed_sequences() -> Sketch:
    """An LSTM in each direction, for which every row is turned at its own length (diacritics of Hebrew)."""
    s = Sketch(15)
    width = 8
    ids, lengths = s.input("ids", I64, "batch", "length"), s.input("lengths", I64, "batch")
    x = s.op("Transpose", s.op("Gather", s.weight(15, width, scale=1), ids), perm=[1, 0, 2])
    turned = s.op("ReverseSequence", x, lengths, time_axis=0, batch_axis=1)
    found = []
    for rows in (x, turned):
        weights = (s.weight(1, 4 * width, width), s.weight(1, 4 * width, width), s.weight(1, 8 * width))
        y = s.op("Squeeze", s.op("LSTM", rows, *weights, hidden_size=width), s.const([1]))
        found.append(y)
    found[1] = s.op("ReverseSequence", found[1], lengths, time_axis=0, batch_axis=1)
    classes = s.linear(s.op("Concat", *found, axis=2), 2 * width, 5)
    s.output(s.op("Transpose", s.op("Softmax", classes, axis=-1), perm=[1, 0, 2]), "marks", F32, "batch", "length", 5)
    return s
