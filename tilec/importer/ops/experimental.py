"""Operators of ONNX's first opsets that it never settled; old exporters wrote them, onnxruntime runs them up to opset
9."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const
from tilec.ir.types import numpy_dtype

LAST = 9
"""The last opset that has them."""

FORMULAS: dict[str, tuple[str, dict[str, float | None]]] = {
    "Affine": ("alpha * x + beta", {"alpha": 1.0, "beta": 0.0}),
    "ParametricSoftplus": (
        "alpha * (maximum(beta * x, 0.0) + log(exp(-abs(beta * x)) + 1.0))",
        {"alpha": None, "beta": None},
    ),
    "Scale": ("scale * x", {"scale": 1.0}),
    "ScaledTanh": ("alpha * tanh(beta * x)", {"alpha": None, "beta": None}),
}
"""Operator -> formula in x and the attributes, with their defaults (None: there is none)."""


@operator(*FORMULAS, until=LAST)
def _elementwise(op: Op) -> Value:
    text, defaults = FORMULAS[op.kind]
    return op.elementwise(text, {"x": op.value(0), **{name: _number(op, name, d) for name, d in defaults.items()}})


@operator("ImageScaler", until=LAST)
def _image_scaler(op: Op) -> Value:
    """`y[n, c, ...] = scale * x[n, c, ...] + bias[c]`."""
    x, bias = op.value(0), _list(op, "bias")
    if x.rank < 2:
        raise ShapeError(f"an image {shape_text(x.shape)} without channels")
    op.require_same(x.shape[1], Const(len(bias)), f"an image {shape_text(x.shape)} with {len(bias)} biases")
    shifts = np.array(bias, numpy_dtype(x.ttype)).reshape(-1, *[1] * (x.rank - 2))
    return op.map("scale * x + bias", x=x, scale=_number(op, "scale", 1.0), bias=op.constant(shifts, x.ttype, "bias"))


@operator("Crop", until=LAST)
def _crop(op: Op) -> Value:
    """An image without a border (left, top, right, bottom); `scale` (height, width) is the size in place of the last
    two."""
    x, border = op.value(0), _list(op, "border")
    size = _list(op, "scale") if "scale" in op.attributes else None
    if x.rank != 4 or len(border) != 4 or (size is not None and len(size) != 2):
        raise ShapeError(f"an image {shape_text(x.shape)}, a border of {len(border)} numbers")
    left, top, right, bottom = border
    shape = list(x.shape)
    for place, (axis, before, after) in enumerate(((2, top, bottom), (3, left, right))):
        most = simplify(formula("n - before", n=x.shape[axis], before=Const(before)))
        taken = simplify(formula("n - after", n=most, after=Const(after))) if size is None else Const(size[place])
        what = f"an image {shape_text(x.shape)} without {before} and {after}"
        op.sizes.demand(formula("taken >= 0", taken=taken), what)
        op.sizes.demand(formula("taken <= most", taken=taken, most=most), what)
        shape[axis] = taken
    axes = op.axes_of(shape)
    n, c, h, w = (axis.var for axis in axes)
    rows, columns = formula("h + top", h=h, top=Const(top)), formula("w + left", w=w, left=Const(left))
    return op.emit(axes, x.access([n, c, rows, columns]), x.ttype)


def _number(op: Op, name: str, default: float | None) -> float:
    """A float attribute, whose kind ONNX does not say any more."""
    value = op.attributes.get(name, default)
    if not isinstance(value, float):
        raise _wrong(op, name, value, "a float")
    return float(np.float32(value))


def _list(op: Op, name: str) -> Sequence[Any]:
    value = op.attributes.get(name)
    if not isinstance(value, Sequence) or isinstance(value, bytes | str):
        raise _wrong(op, name, value, "a list")
    return value


def _wrong(op: Op, name: str, value: object, wanted: str) -> Exception:
    if value is None:
        return op.invalid(f"the attribute {name!r} is missing", "The operator requires it.")
    return op.invalid(f"the attribute {name!r} is {value!r}", f"It must be {wanted}.")
