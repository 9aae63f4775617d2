"""Random quantised models: every form and integer type, odd sizes, zero points at the ends, numbers that saturate.

Scales of one model in two are powers of two, so that sums are the same in any order and many numbers lie in the middle
of two integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
from fuzz.sketch import Model

from quantised.sketch import BYTES, CONTRIB, LONG, SIZES, NothingFits, Sketch

FORMS: list[tuple[float, Callable[[Sketch], None]]] = []


def _draws(weight: float) -> Callable[[Callable[[Sketch], None]], Callable[[Sketch], None]]:
    def register(form: Callable[[Sketch], None]) -> Callable[[Sketch], None]:
        FORMS.append((weight, form))
        return form

    return register


def draw(seed: int, index: int, most: int = 6) -> Model:
    """Model number `index` of a sequence, of about `most` nodes; the same numbers give the same model."""
    rng = np.random.default_rng([seed, index])
    sketch = Sketch(rng, int(rng.choice((13, 19, 21, 21, 23, 25, 26))), bool(rng.random() < 0.5))
    shares = np.array([weight for weight, _ in FORMS])
    length = int(rng.integers(1, most + 1))
    for _ in range(40):
        if len(sketch.nodes) >= length:
            break
        form = FORMS[int(rng.choice(len(FORMS), p=shares / shares.sum()))][1]
        before = dict(sketch.judged.known), len(sketch.nodes)
        try:
            form(sketch)
        except NothingFits:
            del sketch.nodes[before[1] :]
            sketch.judged.known = before[0] | {
                n: k for n, k in sketch.judged.known.items() if n in sketch.feeds or n in sketch.weights
            }
    return sketch.finish() if sketch.nodes else draw(seed, index + 1_000_000, most)


# what forms share


def _matrix(s: Sketch, kinds: Sequence[str]) -> str:
    """The left operand of a product."""
    lead = s.choice(((), (), (2,), (1, 3)))
    return s.pick(kinds, lambda shape: 2 <= len(shape) <= 4, lambda: (*lead, s.size(), s.choice(SIZES + LONG)))


def _image(s: Sketch, kinds: Sequence[str]) -> str:
    rank = s.choice((1, 2, 2, 2, 3))
    sides = {1: (1, 5, 9, 17, 32), 2: (1, 4, 7, 9, 14), 3: (1, 3, 5)}[rank]
    channels = s.choice((1, 2, 3, 4, 5, 6, 8, 16, 17))
    return s.pick(
        kinds,
        lambda shape: 3 <= len(shape) <= 5,
        lambda: (s.integer(1, 2), channels, *(s.choice(sides) for _ in range(rank))),
    )


def _window(s: Sketch, shape: Sequence[int], pool: bool = False) -> dict[str, Any]:
    """Kernel, strides, dilations and padding that leave at least one window."""
    rank = len(shape)
    kernel = [s.choice((1, 1, 2, 3, 3, 5)) for _ in range(rank)]
    window: dict[str, Any] = {"kernel_shape": kernel, "strides": [s.choice((1, 1, 1, 2, 3)) for _ in range(rank)]}
    dilations = [s.choice((1, 1, 1, 2, 3)) for _ in range(rank)]
    if any(d > 1 for d in dilations) and not pool:
        window["dilations"] = dilations
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, window.get("dilations", [1] * rank), strict=True)]
    if s.chance(0.15) and not pool and "dilations" not in window:
        window["auto_pad"] = s.choice(("SAME_UPPER", "SAME_LOWER"))
        return window
    low, high = ([s.integer(0, k - 1) if s.chance(0.6) else 0 for k in kernel] for _ in range(2))
    window["pads"] = [*low, *high]
    if any(n + a + b < span for n, a, b, span in zip(shape, low, high, spans, strict=True)):
        raise NothingFits
    return window


def _filters(s: Sketch, kind: str, image: str, window: dict[str, Any]) -> tuple[str, int]:
    """A weight for an image, and the number of groups."""
    channels = s.dims(image)[1]
    groups = s.choice([g for g in (1, 1, 1, 2, 3, 4, channels) if channels % g == 0])
    count = groups * s.choice((1, 1, 2, 3, 5, 16 if groups < 3 else 2))
    shape = (count, channels // groups, *window["kernel_shape"])
    return (s.new(kind, shape) if s.chance(0.9) else s.new(kind, shape, fed=True)), groups


def _for_columns(s: Sketch, columns: int) -> tuple[int, ...]:
    """The shape of scales for a whole tensor or for each column, row or filter."""
    return (columns,) if s.chance(0.5) else ()


def _quantise(s: Sketch, x: str, kind: str, axis: int | None = None) -> list[str]:
    """QuantizeLinear with a scale that fits; returns the result, scale and zero point."""
    shape = (s.dims(x)[axis],) if axis is not None else ()
    scale = s.scale_for(s.numbers(x), kind)
    if shape:
        scale = s.scales(shape, float(s.numbers(scale)))
    zero = s.zeros(kind, shape)
    (made,) = s.node("QuantizeLinear", [x, scale, zero], **({"axis": axis} if axis is not None else {}))
    return [made, scale, zero]


def _dequantised_weight(s: Sketch, shape: tuple[int, ...], axis: int) -> str:
    """A constant or an input of integers, for the whole, along an axis, or in blocks along another axis."""
    kind = s.choice(s.types())
    codes = s.new(kind, shape, fed=s.chance(0.1))
    blocked = s.opset >= 21 and len(shape) > 1 and s.chance(0.5)
    attributes: dict[str, Any] = {"axis": axis}
    of: tuple[int, ...] = (shape[axis],) if s.chance(0.5) else ()
    if blocked:
        along = 1 - axis if axis < 2 else 0
        block = s.choice((1, 2, 3, 4, 8, 16, 32))
        attributes = {"axis": along, "block_size": block}
        of = tuple(-(-n // block) if d == along else n for d, n in enumerate(shape))
    near = 8.0 / (1 << min(int(kind[1:]), 12))
    inputs = [codes, s.scales(of, near), *([s.zeros(kind, of)] if s.chance(0.7) else [])]
    (made,) = s.node("DequantizeLinear", inputs, **attributes)
    return made


# forms


@_draws(2)
def quantise(s: Sketch) -> None:
    """A float and its integers, and maybe back."""
    x = s.pick(["f32"], lambda shape: len(shape) > 0, lambda: [s.size() for _ in range(s.integer(1, 3))])
    axis = s.integer(0, len(s.dims(x)) - 1) if s.chance(0.4) else None
    made, scale, zero = _quantise(s, x, s.choice(s.types()), axis)
    if s.chance(0.5):
        s.node("DequantizeLinear", [made, scale, zero], **({"axis": axis} if axis is not None else {}))


@_draws(2)
def dequantise(s: Sketch) -> None:
    kinds = [*s.types(), "i32"]
    x = s.pick(kinds, lambda shape: len(shape) > 0, lambda: [s.size() for _ in range(s.integer(1, 3))])
    axis = s.integer(0, len(s.dims(x)) - 1)
    of = _for_columns(s, s.dims(x)[axis])
    zero = [s.zeros(s.kind(x), of)] if s.kind(x) != "i32" and s.chance(0.7) else []
    s.node("DequantizeLinear", [x, s.scales(of), *zero], axis=axis)


@_draws(4)
def qdq_product(s: Sketch) -> None:
    """Quantised activations times quantised weights, by MatMul or Gemm, requantised."""
    x = _matrix(s, ["f32"])
    kind = s.choice(s.types(("u8", "i8", "u8", "i8", "u16", "i16", "u4", "i4")))
    (left,) = s.node("DequantizeLinear", _quantise(s, x, kind))
    k, n = s.dims(x)[-1], s.size()
    gemm = len(s.dims(x)) == 2 and s.chance(0.4)
    turned = gemm and s.chance(0.5)
    right = _dequantised_weight(s, (n, k) if turned else (k, n), 0 if turned else 1)
    if gemm:
        (y,) = s.node("Gemm", [left, right, *([s.new("f32", (n,))] if s.chance(0.5) else [])], transB=int(turned))
    else:
        (y,) = s.node("MatMul", [left, right])
        if s.chance(0.3):
            (y,) = s.node("Add", [y, s.new("f32", (n,))])
    _finished(s, y)


@_draws(4)
def qdq_convolution(s: Sketch) -> None:
    """A convolution of dequantised operands, with bias, activation and a residual, requantised."""
    x = _image(s, ["f32"])
    quantised = _quantise(s, x, s.choice(s.types(("u8", "i8", "u8", "i8", "u16", "i16", "u4", "i4"))))
    (image,) = s.node("DequantizeLinear", quantised)
    window = _window(s, s.dims(x)[2:])
    channels = s.dims(x)[1]
    groups = s.choice([g for g in (1, 1, 1, 2, 3, 4, channels) if channels % g == 0])
    count = groups * s.choice((1, 1, 2, 3, 5, 16 if groups < 3 else 2))
    weight = _dequantised_weight(s, (count, channels // groups, *window["kernel_shape"]), 0)
    bias = []
    if s.chance(0.6):
        codes = s.new("i32", (count,))
        bias = s.node("DequantizeLinear", [codes, s.scales((), 2.0**-8), s.given("i32", 0)])
    (y,) = s.node("Conv", [image, weight, *bias], group=groups, **window)
    if s.dims(y) == s.dims(image) and s.chance(0.6):
        (y,) = s.node("Add", [y, image])
    _finished(s, y)


def _finished(s: Sketch, y: str) -> None:
    """A float with an activation maybe, and requantised mostly."""
    if s.chance(0.3):
        (y,) = s.node("Relu", [y])
    elif s.chance(0.2):
        (y,) = s.node("Clip", [y, s.given("f32", 0.0), s.given("f32", 6.0)])
    if s.chance(0.8):
        quantised = _quantise(s, y, s.choice(s.types(("u8", "i8", "u8", "i8", "u16", "i16", "u4", "i4"))))
        if s.chance(0.5):
            s.node("DequantizeLinear", quantised)


@_draws(2)
def qdq_elementwise(s: Sketch) -> None:
    """An addition or product of two dequantised tensors, requantised."""
    x = s.pick(BYTES, lambda shape: 0 < len(shape) < 5, lambda: [s.size() for _ in range(s.integer(1, 3))])
    y = s.new(s.choice(BYTES), [1 if s.chance(0.3) else n for n in s.dims(x)], fed=s.chance(0.7))
    real = [s.node("DequantizeLinear", [q, s.scales(()), s.zeros(s.kind(q), ())])[0] for q in (x, y)]
    (made,) = s.node(s.choice(("Add", "Add", "Mul", "Sub")), real)
    _quantise(s, made, s.choice(BYTES))


@_draws(4)
def matmul_integer(s: Sketch) -> None:
    a = _matrix(s, BYTES)
    k, n = s.dims(a)[-1], s.size()
    kind = s.choice(BYTES)
    lead = s.dims(a)[:-2] if s.chance(0.3) else ()
    b = s.new(kind, (*lead, k, n), fed=s.chance(0.15))
    rows = s.dims(a)[-2]
    zero_a = s.zeros(s.kind(a), (rows,) if len(s.dims(a)) == 2 and s.chance(0.3) else ())
    zeros = [zero_a, s.zeros(kind, _for_columns(s, n) if not lead else ())][: s.integer(0, 2)]
    if s.chance(0.2):
        factors = [s.scales(()), s.scales(_for_columns(s, n) if not lead else ())]
        empty = ["" for _ in range(2 - len(zeros))]
        whole = [z if s.dims(z) == () or z != zero_a else s.zeros(s.kind(a), ()) for z in zeros]
        s.node("MatMulIntegerToFloat", [a, b, *factors, *whole, *empty], domain=CONTRIB)
        return
    (y,) = s.node("MatMulInteger", [a, b, *zeros])
    _scaled(s, y)


@_draws(4)
def conv_integer(s: Sketch) -> None:
    x = _image(s, BYTES)
    window = _window(s, s.dims(x)[2:])
    kind = s.choice(BYTES)
    w, groups = _filters(s, kind, x, window)
    zeros = [s.zeros(s.kind(x), ()), s.zeros(kind, _for_columns(s, s.dims(w)[0]))][: s.integer(0, 2)]
    (y,) = s.node("ConvInteger", [x, w, *zeros], group=groups, **window)
    _scaled(s, y)


def _scaled(s: Sketch, y: str) -> None:
    """Sums of integers as floats, with a scale, or left as they are."""
    if s.chance(0.6):
        (real,) = s.node("Cast", [y], to=onnx.TensorProto.FLOAT)
        s.node("Mul", [real, s.scales((), 2.0**-7)])


@_draws(3)
def dynamic(s: Sketch) -> None:
    """Activations that are quantised over their range, times weights, scaled."""
    x = _matrix(s, ["f32"])
    q, scale, zero = s.node("DynamicQuantizeLinear", [x], outputs=3)
    k, n, kind = s.dims(x)[-1], s.size(), s.choice(BYTES)
    of = _for_columns(s, n)
    (y,) = s.node("MatMulInteger", [q, s.new(kind, (k, n)), zero, s.zeros(kind, of)])
    (real,) = s.node("Cast", [y], to=onnx.TensorProto.FLOAT)
    (factor,) = s.node("Mul", [scale, s.scales(of)])
    s.node("Mul", [real, factor])


@_draws(3)
def qlinear_matmul(s: Sketch) -> None:
    a = _matrix(s, BYTES)
    k, n = s.dims(a)[-1], s.size()
    kind, made = s.choice(BYTES), s.kind(a)
    of = _for_columns(s, n)
    b, zero_a, zero_b = s.new(kind, (k, n), fed=s.chance(0.1)), s.zeros(s.kind(a), ()), s.zeros(kind, of)
    scale_a, scale_b = s.scales(()), s.scales(of)
    total = np.matmul(s.numbers(a) - s.numbers(zero_a), s.numbers(b) - s.numbers(zero_b))
    scale = s.scale_for(total * s.numbers(scale_a) * s.numbers(scale_b), made)
    s.node("QLinearMatMul", [a, scale_a, zero_a, b, scale_b, zero_b, scale, s.zeros(made, ())])


@_draws(4)
def qlinear_conv(s: Sketch) -> None:
    x = _image(s, BYTES)
    window = _window(s, s.dims(x)[2:])
    kind, made = s.choice(BYTES), s.kind(x)
    w, groups = _filters(s, kind, x, window)
    of = _for_columns(s, s.dims(w)[0])
    scale_x, zero_x, scale_w = s.scales(()), s.zeros(s.kind(x), ()), s.scales(of)
    zero_w = s.zeros(kind, of if s.chance(0.5) else ())
    spread = 60.0 * 60.0 * np.sqrt(prod(s.dims(w)[1:])) * float(s.numbers(scale_x)) * float(s.numbers(scale_w).max())
    scale = s.scale_for(np.array(spread), made)
    bias = [s.new("i32", (s.dims(w)[0],))] if s.chance(0.5) else []
    inputs = [x, scale_x, zero_x, w, scale_w, zero_w, scale, s.zeros(made, ()), *bias]
    s.node("QLinearConv", inputs, group=groups, **window)


@_draws(3)
def matmul_nbits(s: Sketch) -> None:
    """Weights of 2, 4 and 8 bits in blocks; zero points packed, floats or absent."""
    x = _matrix(s, ["f32"])
    inner, rows = s.dims(x)[-1], s.size()
    bits, block = s.choice((2, 4, 4, 8)), s.choice((16, 16, 32, 64))
    blocks = -(-inner // block)
    packed = s.new("u8", (rows, blocks, block * bits // 8))
    scales = s.scales((rows * blocks,) if s.chance(0.5) else (rows, blocks), 4.0 / (1 << bits))
    zeros = []
    if s.chance(0.7):
        packed_zeros = s.new("u8", (rows, -(-blocks * bits // 8)))
        zeros = [packed_zeros if s.chance(0.8) else s.given("f32", s.rng.integers(0, 1 << bits, (rows, blocks)))]
    attributes = {"K": inner, "N": rows, "bits": bits, "block_size": block, "domain": CONTRIB}
    s.node("MatMulNBits", [x, packed, scales, *zeros], **attributes)


@_draws(3)
def blocked(s: Sketch) -> None:
    """A float times weights in blocks of few bits, or rows of such weights."""
    if s.opset < 21:
        raise NothingFits
    x = _matrix(s, ["f32"])
    weight = _dequantised_weight(s, (s.dims(x)[-1], s.size()), 1)
    if s.chance(0.2):
        places = s.rng.integers(0, s.dims(x)[-1], s.integer(1, 5))
        s.node("Gather", [weight, s.given("i64", places)], axis=0)
    else:
        s.node("MatMul", [x, weight])


@_draws(1.5)
def qlinear_elementwise(s: Sketch) -> None:
    kind = s.choice(BYTES)
    a = s.pick([kind], lambda shape: 0 < len(shape) < 5, lambda: [s.size() for _ in range(s.integer(1, 3))])
    b = s.new(kind, [1 if s.chance(0.2) else n for n in s.dims(a)], fed=True)
    triples = [part for q in (a, b) for part in (q, s.scales(()), s.zeros(kind, ()))]
    op = s.choice(("QLinearAdd", "QLinearMul"))
    scale = s.scales((), 0.06 if op == "QLinearAdd" else 0.1)
    s.node(op, [*triples, scale, s.zeros(kind, ())], domain=CONTRIB)


@_draws(2)
def movement(s: Sketch) -> None:
    """Integers in another order, cut, joined, pooled."""
    kinds = ["u8", "i8", "u8", "i8", "i32"]
    x = s.pick(kinds, lambda shape: len(shape) > 1, lambda: [s.size() for _ in range(s.integer(2, 4))])
    shape = s.dims(x)
    move = s.choice(("Transpose", "Reshape", "Slice", "Concat", "MaxPool"))
    if move == "Transpose":
        s.node(move, [x], perm=[int(d) for d in s.rng.permutation(len(shape))])
    elif move == "Reshape":
        s.node(move, [x, s.given("i64", [shape[0], -1])])
    elif move == "Slice":
        axis = s.integer(0, len(shape) - 1)
        start = s.integer(0, shape[axis] - 1)
        s.node(move, [x, *(s.given("i64", [v]) for v in (start, shape[axis], axis, s.integer(1, 2)))])
    elif move == "Concat":
        s.node(move, [x, s.new(s.kind(x), shape, fed=True)], axis=s.integer(0, len(shape) - 1))
    elif 3 <= len(shape) <= 5 and s.kind(x) in BYTES:
        s.node(move, [x], **_window(s, shape[2:], pool=True))
