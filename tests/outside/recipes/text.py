"""Segmenters and classifiers of text."""

from __future__ import annotations

import numpy as np

from tests.outside.recipes.sketch import BEGIN, END, Sketch

F32, F16, I32, I64 = np.float32, np.float16, np.int32, np.int64


def convolved_syllables() -> Sketch:
    """Two rows of codes, dilated convolutions, the largest of them, a number for each character (words of Thai)."""
    s = Sketch(18)
    codes = s.input("input", I64, 1, 2, "seq_len")
    rows = [s.op("Gather", codes, s.const(row), axis=1) for row in (0, 1)]
    x = s.op("Concat", *(s.op("Gather", s.weight(30, 8, scale=1), row) for row in rows), axis=2)
    x = s.op("Transpose", x, perm=[0, 2, 1])
    found = []
    for kernel, dilation in ((3, 1), (5, 3), (9, 2)):
        pad = (kernel // 2) * dilation
        y = s.conv(x, 16, 12, kernel, dilations=[dilation], pads=[pad, pad], strides=[1], group=1)
        found.append(s.op("Unsqueeze", s.op("Transpose", y, perm=[0, 2, 1]), s.const([3])))
    best = s.op("ReduceMax", s.op("Concat", *found, axis=3), s.const([3]), keepdims=0)
    y = s.linear(s.op("Relu", s.linear(best, 12, 8)), 8, 1)
    s.output(s.op("Reshape", y, s.const([-1]), allowzero=1), "output", F32, "seq_len")
    return s


def _wrapped(s: Sketch, codes: str, classes: int) -> str:
    """Negative codes counted from the end, as TensorFlow's converter writes it for embeddings."""
    moved = s.op("Add", codes, s.const(classes, I32))
    below = s.op("Less", s.op("Cast", codes, to=1), s.const(0.0))
    chosen = s.op("Mul", s.op("Cast", below, to=6), moved)
    kept = s.op("Mul", codes, s.op("Cast", s.op("Not", below), to=6))
    return s.op("Add", chosen, kept)


def columns_apart() -> Sketch:
    """A product for every column of a convolution, cut out and joined again (words of Thai, converted from Keras)."""
    s = Sketch(15)
    characters, kinds = s.input("inputs", F32, "unk_0", 9), s.input("inputs_1", F32, "unk_1", 9)
    embedded = s.op("Gather", s.weight(20, 8, scale=1), _wrapped(s, s.op("Cast", characters, to=6), 20))
    x = s.op("Add", s.op("Mul", embedded, s.weight(8)), s.weight(8))
    x = s.op("Transpose", s.op("Unsqueeze", x, s.const([-3])), perm=[0, 3, 1, 2])
    joined = []
    for kernel in (4, 3):
        y = s.op("Conv", x, s.weight(10, 8, 1, kernel), kernel_shape=[1, kernel], strides=[1, 1])
        y = s.op("Relu", s.op("Add", s.op("Squeeze", y, s.const([2])), s.weight(1, 10, 1)))
        y = s.op("Transpose", y, perm=[2, 0, 1])
        weight, bias = s.weight(10, 3), s.weight(3)
        columns = []
        for column in reversed(range(10 - kernel)):
            cut = s.op(
                "Squeeze", s.op("Slice", y, s.const([column]), s.const([column + 1]), s.const([0])), s.const([0])
            )
            columns.append(s.op("Unsqueeze", s.op("Add", s.op("MatMul", cut, weight), bias), s.const([0])))
        stacked = s.op("Transpose", s.op("Concat", *reversed(columns), axis=0), perm=[1, 0, 2])
        joined.append(s.op("Pad", stacked, s.const([0, 0, 0, 0, kernel - 1, 0])))
    shape = s.op("Gather", s.weight(5, 3, scale=1), _wrapped(s, s.op("Cast", kinds, to=6), 5))
    best = s.op("Max", *joined)
    flat = s.op("Reshape", s.op("Concat", best, shape, axis=2), s.const([-1, 54]))
    s.output(s.op("Sigmoid", s.linear(s.op("Relu", s.linear(flat, 54, 8)), 8, 1)), "output_0", F32, "unk_2", 1)
    return s


def half_precision_morphemes() -> Sketch:
    """Convolutions in f16 over words of any number and length (segmenter of Russian words, converted from Keras)."""
    s = Sketch(17)
    letters = s.input("input_layer", I32, "unk_0", "unk_1")
    x = s.op("Cast", s.op("Gather", s.weight(12, 16, scale=1), _wrapped(s, letters, 12)), to=10)
    x = s.op("Transpose", s.op("Unsqueeze", x, s.const([-3])), perm=[0, 3, 1, 2])
    for given, made, kernel, last in ((16, 24, 5, False), (24, 24, 5, False), (24, 9, 1, True)):
        weight = s.weight(made, given, 1, kernel, dtype=F16)
        x = s.op("Conv", x, weight, auto_pad="SAME_UPPER", kernel_shape=[1, kernel], strides=[1, 1], dilations=[1, 1])
        x = s.op("Add", s.op("Squeeze", x, s.const([2])), s.weight(1, made, 1, dtype=F16, scale=0.1))
        x = x if last else s.op("Unsqueeze", s.op("Relu", x), s.const([2]))
    s.output(s.op("Transpose", s.op("Softmax", x, axis=1), perm=[0, 2, 1]), "output_0", F16, "unk_2", "unk_3", 9)
    return s


def _norm(s: Sketch, x: str, width: int) -> str:
    return s.op("LayerNormalization", x, s.weight(width, scale=1), s.weight(width), axis=-1, epsilon=1e-5)


def _turned(s: Sketch, key: str) -> str:
    """The last two axes swapped through three, which PyTorch's exporter writes for scaled dot products."""
    shape = s.op("Shape", key, start=0)
    last = s.op("Slice", shape, s.const([-1]), s.const([END]))
    before, rest = (
        s.op("Slice", shape, s.const([-2]), s.const([-1])),
        s.op("Slice", shape, s.const([BEGIN]), s.const([-2])),
    )
    flat = s.op("Reshape", key, s.op("Concat", s.const([-1]), before, last, axis=0), allowzero=0)
    turned = s.op("Transpose", flat, perm=[0, 2, 1])
    return s.op("Reshape", turned, s.op("Concat", rest, last, before, axis=0), allowzero=0)


def masked_tokens() -> Sketch:
    """A transformer whose mask is read at positions that are made of ranges, expanded (exporter of PyTorch 2)."""
    s = Sketch(20)
    width, heads = 16, 2
    ids, mask = s.input("input_ids", I64, "batch", "length"), s.input("attention_mask", I64, "batch", "length")
    batch, length = s.op("Shape", ids, start=0, end=1), s.op("Shape", mask, start=1, end=2)
    positions = s.slice(s.const(np.arange(40)[None]), 0, length, 1)
    x = s.op("Add", s.op("Gather", s.weight(30, width, scale=1), ids), s.op("Gather", s.weight(40, width), positions))
    rows, columns = (s.op("Range", s.const(0), s.op("Squeeze", each), s.const(1)) for each in (batch, length))
    rows = s.op("Unsqueeze", s.op("Unsqueeze", rows, s.const([1, 2])), s.const([3]))
    columns = s.op("Unsqueeze", columns, s.const([0, 1]))
    queries, keys = s.op("Unsqueeze", columns, s.const([3])), s.op("Unsqueeze", columns, s.const([2]))
    shape = s.op("Shape", s.op("Max", rows, keys), start=0)
    index = [s.op("Unsqueeze", s.op("Expand", each, shape), s.const([-1])) for each in (rows, keys)]
    kept = s.op("GatherND", s.op("Cast", mask, to=9), s.op("Concat", *index, axis=-1), batch_dims=0)
    kept = s.op("And", s.op("And", s.const(True), s.op("GreaterOrEqual", queries, s.const(0))), kept)
    bias = s.op("Where", kept, s.const(0.0), s.const(float("-inf")))
    split = s.op("Concat", batch, length, s.const([-1]), s.const([width // heads]), axis=0)
    query, key, value = (
        s.op("Transpose", s.op("Reshape", s.linear(x, width, width), split, allowzero=1), perm=[0, 2, 1, 3])
        for _ in "qkv"
    )
    scale = s.const([(width // heads) ** -0.25])
    scores = s.op("Add", s.op("MatMul", s.op("Mul", query, scale), s.op("Mul", _turned(s, key), scale)), bias)
    shares = s.op("Softmax", scores, axis=-1)
    shares = s.op("Where", s.op("IsNaN", shares), s.const(0.0), shares)
    heard = s.op("Transpose", s.op("MatMul", shares, value), perm=[0, 2, 1, 3])
    heard = s.op("Reshape", heard, s.op("Concat", batch, length, s.const([width]), axis=0), allowzero=1)
    x = _norm(s, s.op("Add", s.linear(heard, width, width), x), width)
    s.output(x, "hidden", F32, "batch", "length", width)
    return s
