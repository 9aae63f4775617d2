"""Models of pictures whose height and width are open."""

from __future__ import annotations

import numpy as np

from tests.outside.recipes.sketch import Sketch

F32, I64 = np.float32, np.int64


def line_of_text() -> Sketch:
    """Convolutions and an LSTM over the columns of a line of any width (recognition of text)."""
    s = Sketch(17)
    width = 12
    x = s.input("image", F32, 1, 1, 16, "width")
    x = s.op("Relu", s.conv(x, 1, 8, 3, 3, pads=[1, 1, 1, 1]))
    x = s.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = s.op("Relu", s.conv(x, 8, width, 3, 3, pads=[1, 1, 1, 1], strides=[2, 1]))
    x = s.op("MaxPool", x, kernel_shape=[4, 1], strides=[4, 1])
    rows = s.op("Transpose", s.op("Squeeze", x, s.const([2])), perm=[2, 0, 1])
    start = s.zeros(2, s.size(rows, 1), width)
    weights = (s.weight(2, 4 * width, width), s.weight(2, 4 * width, width), s.weight(2, 8 * width))
    y = s.op("LSTM", rows, *weights, "", start, start, direction="bidirectional", hidden_size=width)
    y = s.op("Reshape", s.op("Transpose", y, perm=[0, 2, 1, 3]), s.const([0, 0, -1]))
    logits = s.linear(y, 2 * width, 11)
    s.output(s.op("LogSoftmax", logits, axis=2), "logits", F32, "columns", 1, 11)
    return s


def text_in_pictures() -> Sketch:
    """Features at two scales, the smaller ones enlarged to the size of the others (detection of text)."""
    s = Sketch(17)
    x = s.input("x", F32, 1, 3, "height", "width")
    levels, given = [], 3
    for made in (4, 8):
        x = s.op("HardSwish", s.conv(x, given, made, 3, 3, pads=[1, 1, 1, 1], strides=[2, 2]))
        levels.append(s.conv(x, made, 8, 1, 1))
        given = made
    sizes = s.slice(s.op("Shape", levels[0]), 2, 4, 0)
    sizes = s.op("Concat", s.slice(s.op("Shape", levels[1]), 0, 2, 0), sizes, axis=0)
    options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    up = s.op("Resize", levels[1], "", "", sizes, mode="nearest", **options)
    x = s.op("Add", levels[0], up)
    x = s.op("ConvTranspose", x, s.weight(8, 1, 2, 2), s.weight(1), kernel_shape=[2, 2], strides=[2, 2])
    s.output(s.op("Sigmoid", x), "map", F32, 1, 1, "out_height", "out_width")
    return s


def boxes_of_objects() -> Sketch:
    """Cells of a grid as boxes and scores; those that remain of what overlaps (detection)."""
    s = Sketch(17)
    classes = 3
    x = s.input("images", F32, 1, 3, "height", "width")
    x = s.op("Relu", s.conv(x, 3, 8, 3, 3, pads=[1, 1, 1, 1], strides=[4, 4]))
    x = s.conv(x, 8, 4 + classes, 1, 1)
    x = s.op("Transpose", s.reshape(x, 1, 4 + classes, -1), perm=[0, 2, 1])
    boxes, scores = s.ops("Split", 2, x, s.const([4, classes]), axis=2)
    centre, extent = s.ops("Split", 2, boxes, s.const([2, 2]), axis=2)
    half = s.op("Mul", s.op("Exp", extent), s.const(0.5))
    boxes = s.op("Concat", s.op("Sub", centre, half), s.op("Add", centre, half), axis=2)
    scores = s.op("Transpose", s.op("Sigmoid", scores), perm=[0, 2, 1])
    chosen = s.op("NonMaxSuppression", boxes, scores, s.const([10]), s.const([0.5]), s.const([0.2]))
    number = s.op("Gather", chosen, s.const([2]), axis=1)
    found = s.op("Gather", boxes, s.op("Squeeze", number, s.const([1])), axis=1)
    s.output(found, "boxes", F32, 1, "found", 4)
    s.output(s.op("Gather", chosen, s.const(1), axis=1), "labels", I64, "found")
    return s
