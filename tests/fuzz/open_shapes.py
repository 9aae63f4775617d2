"""Operators whose shapes are computed from those of others: what only models with open sizes have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper

from fuzz.sketch import ALL, NUMBERS, Sketch
from fuzz.table import Drawing, types_of

OPEN_TABLE: list[tuple[float, Drawing]] = []
END = (1 << 63) - 1


def draws_open(weight: float) -> Callable[[Drawing], Drawing]:
    """Register a family of models with open sizes; a weight of 1 is usual."""

    def register(drawing: Drawing) -> Drawing:
        OPEN_TABLE.append((weight, drawing))
        return drawing

    return register


def extent(s: Sketch, name: str, axis: int) -> str:
    """A tensor `[1]` with an extent of another: by Shape alone, or Gather or Slice of it."""
    way = s.integer(0, 2) if s.opset >= 15 else s.integer(1, 2)
    if way == 0:
        return only(s.node("Shape", [name], start=axis, end=axis + 1))
    shape = only(s.node("Shape", [name]))
    if way == 1:
        return only(s.node("Gather", [shape, s.numbers(axis - s.rank(name) if s.chance(0.3) else axis)], axis=0))
    return only(s.node("Slice", [shape, s.numbers(axis), s.numbers(axis + 1)]))


class NothingTaken(Exception):
    """A node that was not taken."""


def only(names: list[str]) -> str:
    """The output of a node that was taken."""
    if not names:
        raise NothingTaken
    return names[0]


def varied(s: Sketch, size: str) -> str:
    """A size that is computed from another: more, less, a part of it, rounded up, or as it is."""
    kind, by = s.choice((("Add", 1), ("Sub", 1), ("Div", 2), ("Mul", 2), ("", 0), ("", 0), ("up", 2)))
    if kind == "up":
        return only(s.node("Div", [only(s.node("Add", [size, s.numbers(by - 1)])), s.numbers(by)]))
    return only(s.node(kind, [size, s.numbers(by)])) if kind else size


@draws_open(6)
def reshape_by_shape(s: Sketch) -> None:
    """Extents of a tensor taken apart and joined again, as exporters write a view."""
    a = s.pick(ALL, least=2)
    k = s.integer(0, s.rank(a) - 2)
    parts = [extent(s, a, d) for d in range(s.rank(a)) if d not in (k, k + 1)]
    parts.insert(k, s.numbers(-1) if s.chance(0.5) else only(s.node("Mul", [extent(s, a, k), extent(s, a, k + 1)])))
    flat = only(s.node("Reshape", [a, only(s.node("Concat", parts, axis=0))]))
    if s.chance(0.5):
        s.node("Reshape", [flat, only(s.node("Shape", [a]))])


@draws_open(5)
def slice_by_shape(s: Sketch) -> None:
    a = s.pick(ALL, least=1)
    d = s.integer(0, s.rank(a) - 1)
    size = varied(s, extent(s, a, d))
    start, end = (s.numbers(s.integer(0, 2)), size) if s.chance(0.6) else (size, s.numbers(END))
    s.node("Slice", [a, start, end, s.numbers(d)])


@draws_open(6)
def slice_from_the_end(s: Sketch) -> None:
    a = s.pick(ALL, least=1)
    d = s.integer(0, s.rank(a) - 1)
    start, end, step = s.choice(
        ((-1, END, 1), (0, -1, 1), (-3, -1, 1), (-1, -END, -1), (-1, -END, -2), (1, END, 2), (-2, 0, -1), (-5, 4, 1))
    )
    s.node("Slice", [a, s.numbers(start), s.numbers(end), s.numbers(d - s.rank(a)), s.numbers(step)])


@draws_open(5)
def gather_from_the_end(s: Sketch) -> None:
    a = s.pick(ALL, least=1)
    d = s.integer(0, s.rank(a) - 1)
    if s.chance(0.4):
        size = extent(s, a, d)
        s.node("Gather", [a, only(s.node("Sub", [size, s.numbers(1)]))], axis=d)
    else:
        index = s.numbers_scalar(-1) if s.chance(0.5) else s.numbers(-1, 0, -1)
        s.node("Gather", [a, index], axis=d)


@draws_open(3)
def expand_to_shape(s: Sketch) -> None:
    a = s.pick(NUMBERS, least=1)
    row = s.new(s.type(a), tuple(n if s.chance(0.4) else 1 for n in s.dims(a)))
    wide = only(s.node("Expand", [row, only(s.node("Shape", [a]))]))
    if s.type(a) in types_of("Add", s.opset):
        s.node("Add", [wide, a])


@draws_open(3)
def constant_of_shape(s: Sketch) -> None:
    a = s.pick(NUMBERS)
    value = onnx.numpy_helper.from_array(np.array([s.integer(-2, 3)]).astype(s.value(a).dtype))
    filled = only(s.node("ConstantOfShape", [only(s.node("Shape", [a]))], value=value))
    if s.type(a) in types_of("Mul", s.opset):
        s.node("Add" if s.chance(0.5) else "Sub", [a, filled])


@draws_open(4)
def positions(s: Sketch) -> None:
    """Numbers of places along a dimension, added, compared as a causal mask, or looked up."""
    a = s.pick(("f32", "f64"), least=1)
    size = only(s.node("Squeeze", [extent(s, a, s.rank(a) - 1), s.numbers(0)]))
    steps = only(s.node("Range", [s.numbers_scalar(0), size, s.numbers_scalar(1)]))
    way = s.integer(0, 2)
    if way == 0:
        number = TensorProto.FLOAT if s.type(a) == "f32" else TensorProto.DOUBLE
        s.node("Add", [a, only(s.node("Cast", [steps], to=number))])
    elif way == 1:
        back = only(s.node("Sub", [only(s.node("Sub", [size, s.numbers_scalar(1)])), steps]))
        s.node("Gather", [a, back], axis=-1)
    else:
        column = only(s.node("Unsqueeze", [steps, s.numbers(1)]))
        s.node("Where", [only(s.node("Less", [column, steps])), a, s.given(np.zeros((), s.value(a).dtype))])


@draws_open(4)
def concat_open(s: Sketch) -> None:
    a = s.pick(ALL, least=1)
    d = s.integer(0, s.rank(a) - 1)
    b = s.new(s.type(a), tuple(s.size() if k == d else n for k, n in enumerate(s.dims(a))))
    s.node("Concat", s.choice(([a, b], [b, a], [a, a], [a, b, a])), axis=d)


@draws_open(3)
def tile_by_shape(s: Sketch) -> None:
    a, b = s.pick(ALL, least=1, most=2), s.pick(ALL, least=1)
    count = extent(s, b, 0)
    ones = [s.numbers(1)] * (s.rank(a) - 1)
    s.node("Tile", [a, only(s.node("Concat", [count, *ones], axis=0)) if ones else count])


@draws_open(3)
def pad_by_shape(s: Sketch) -> None:
    """Up to a multiple of a number, as models of images pad."""
    a = s.pick(types_of("Pad", s.opset), least=1)
    d, rank = s.integer(0, s.rank(a) - 1), s.rank(a)
    size = extent(s, a, d)
    missing = only(s.node("Mod", [only(s.node("Neg", [size])), s.numbers(s.choice((2, 4)))]))
    zeros = [s.numbers(0)] * (2 * rank)
    zeros[rank + d] = missing
    s.node("Pad", [a, only(s.node("Concat", zeros, axis=0))])


@draws_open(2)
def recurrence(s: Sketch) -> None:
    """An RNN, GRU or LSTM over an open length."""
    kind, gates = s.choice((("RNN", 1), ("GRU", 3), ("LSTM", 4)))
    x = s.pick(("f32",), least=3, most=3, where=lambda n: s.dims(n)[2] <= 16)
    hidden, both = s.choice((2, 3, 4)), s.chance(0.3)
    ways = 2 if both else 1
    w = s.given(s.rng.uniform(-0.5, 0.5, (ways, gates * hidden, s.dims(x)[2])).astype(np.float32))
    r = s.given(s.rng.uniform(-0.5, 0.5, (ways, gates * hidden, hidden)).astype(np.float32))
    direction = "bidirectional" if both else s.choice(("forward", "reverse"))
    s.node(kind, [x, w, r], 3 if kind == "LSTM" else 2, hidden_size=hidden, direction=direction)


@draws_open(2)
def scan(s: Sketch) -> None:
    """A Scan along an open dimension whose state decays."""
    x = s.pick(("f32",), least=2, most=3)
    shape = s.dims(x)[1:]
    state = s.given(np.zeros(shape, np.float32), fed=s.chance(0.5))
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["h", "half"], ["decayed"]),
            helper.make_node("Add", ["decayed", "e"], ["next"]),
            helper.make_node("Tanh", ["next"], ["out"]),
        ],
        "body",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("h", "e")],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("next", "out")],
        [onnx.numpy_helper.from_array(np.float32(0.5), "half")],
    )
    s.node("Scan", [state, x], 2, body=body, num_scan_inputs=1)


@draws_open(3)
def quantised(s: Sketch) -> None:
    """Codes of 8 bits and back."""
    x = s.pick(("f32",), least=1)
    kind = s.choice((np.int8, np.uint8))
    scale, zero = s.given(np.float32(0.25)), s.given(np.array(s.integer(0, 3), kind))
    codes = only(s.node("QuantizeLinear", [x, scale, zero]))
    s.node("DequantizeLinear", [codes, scale, zero])
