"""Models of sound and of other signals."""

from __future__ import annotations

import numpy as np

from tests.outside.recipes.sketch import Sketch

F32 = np.float32


def voice_activity() -> Sketch:
    """A chunk of sound: reflected ends, filters, magnitudes, convolutions, an LSTM whose state comes and goes."""
    s = Sketch(16)
    width = 16
    sound, state = s.input("input", F32, "batch", "samples"), s.input("state", F32, 2, "batch", width)
    x = s.op("Pad", sound, s.const([0, 0, 0, 16]), mode="reflect")
    x = s.op("Conv", s.op("Unsqueeze", x, s.const([1])), s.weight(18, 1, 32), strides=[16])
    real, imaginary = (s.slice(x, *part, 1) for part in ((0, 9), (9, 18)))
    power = s.op("Add", *(s.op("Pow", part, s.const(2.0)) for part in (real, imaginary)))
    x = s.op("Relu", s.conv(s.op("Sqrt", power), 9, width, 3, pads=[1, 1], strides=[2]))
    rows = s.op("Transpose", x, perm=[2, 0, 1])
    start = [s.op("Slice", state, s.const([side]), s.const([side + 1]), s.const([0])) for side in (0, 1)]
    weights = (s.weight(1, 4 * width, width), s.weight(1, 4 * width, width), s.weight(1, 8 * width))
    y, last, memory = s.ops("LSTM", 3, rows, *weights, "", *start, hidden_size=width)
    y = s.op("Transpose", s.op("Squeeze", y, s.const([1])), perm=[1, 2, 0])
    y = s.op("Sigmoid", s.conv(s.op("Relu", y), width, 1, 1))
    s.output(s.op("Squeeze", s.op("ReduceMean", y, axes=[2], keepdims=1), s.const([2])), "output", F32, "batch", 1)
    s.output(s.op("Concat", last, memory, axis=0), "stateN", F32, 2, "batch", width)
    return s


def sleep_spindles() -> Sketch:
    """A U-Net of one dimension whose halves are cut to the same length (spindles of sleep)."""
    s = Sketch(17)
    raw, spectrum = s.input("raw_signal", F32, "batch_size", 1, 50), s.input("spectrogram", F32, "batch_size", 5, 50)
    x = s.op("Concat", raw, spectrum, axis=1)
    kept, given = [], 6
    for made in (8, 12):
        kept.append((x, given))
        x = s.gelu(s.conv(x, given, made, 3, strides=[2], pads=[1, 1]))
        given = made
    for skipped, channels in reversed(kept):
        x = s.op("ConvTranspose", x, s.weight(given, 8, 4), s.weight(8), strides=[2], pads=[1, 1], kernel_shape=[4])
        x = s.slice(x, 0, s.size(skipped, 2), 2)
        x = s.op("Concat", x, s.slice(skipped, 0, s.size(x, 2), 2), axis=1)
        statistics = (s.weight(8 + channels, scale=0.2), s.weight(8 + channels), s.weight(8 + channels))
        x = s.op("BatchNormalization", x, *statistics, s.const(np.full(8 + channels, 0.5, F32)))
        given = 8 + channels
    x = s.op("Transpose", s.op("Sigmoid", s.conv(s.gelu(x), given, 1, 1)), perm=[0, 2, 1])
    s.output(x, "segmentation", F32, "batch_size", "out_length", 1)
    return s
