"""Constants and tensors computed from shapes alone."""

from __future__ import annotations

import numpy as np

from tilec.importer.element_types import ELEMENT_TYPES
from tilec.importer.fold import literal
from tilec.importer.fold_ratios import ratios_in
from tilec.importer.forms import chosen
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ratio import ceil, quotient, total
from tilec.importer.registry import operator
from tilec.importer.shapes import size_of
from tilec.importer.value import Value
from tilec.importer.weights import Stored
from tilec.ir.algebra import simplify
from tilec.ir.expr import Call, Const, Expr, constant_value, variables
from tilec.ir.types import TTYPES


@operator("Constant")
def _constant(op: Op) -> Value:
    simple = {"value_int": "i64", "value_ints": "i64", "value_float": "f32", "value_floats": "f32"}
    for name, value in op.attributes.items():
        if isinstance(value, Stored):
            return op.builder.constant(op.name(), value)
        if name in simple:
            return op.constant(np.asarray(value), simple[name])
    raise op.unsupported(
        f"a constant given as {', '.join(op.attributes) or 'nothing'}", "Use a dense tensor of numbers."
    )


@operator("ConstantOfShape")
def _constant_of_shape(op: Op) -> Value:
    shape = op.contents(0) or ()
    value = op.attributes.get("value")
    if not isinstance(value, Stored):
        return op.full(shape, 0.0, "f32")
    scalar = literal(value.array)
    if scalar is None:
        raise op.invalid(f"the attribute 'value' has {value.array.size} elements", "It must have one.")
    return op.full(shape, scalar, value.ttype)


@operator("Shape")
def _shape(op: Op) -> Value:
    value = op.value(0)
    shape = value.shape[slice(op.attributes.get("start"), op.attributes.get("end"))]
    axes = op.axes_of([Const(len(shape))])
    return op.emit(axes, chosen(axes[0].var, shape), "i64")


@operator("Size")
def _size(op: Op) -> Value:
    return op.emit((), size_of(op.value(0).shape), "i64")


@operator("Range")
def _range(op: Op) -> Value:
    """`start + i * delta`; the number of elements must be known."""
    start, delta = op.value(0), op.value(2)
    ttype = start.ttype
    if TTYPES[ttype].kind == "float":
        length = _float_length(op, ttype)
    else:
        length = _length(op, op.single(0), op.single(1), op.single(2))
    axes = op.axes_of([length])
    index: Expr = axes[0].var if ttype == "i64" else Call(ttype, (axes[0].var,))
    body = formula("i * delta + start", i=index, start=start.at(()), delta=delta.at(()))
    return op.emit(axes, simplify(body) if ttype == "i64" else body, ttype)


def _float_length(op: Op, ttype: str) -> Expr:
    """The number of elements of a range of floats; the distance is rounded to their type, as in onnxruntime."""
    counted = _ratio_length(op)
    if counted is not None:
        return counted
    first, last, step = (np.float64(op.required(i)) for i in range(3))
    dtype = np.dtype(np.float64 if ttype == "f64" else np.float32)
    distance = np.float64(last.astype(dtype) - first.astype(dtype))
    if step == 0 or not np.isfinite(distance) or np.isnan(step):
        raise op.invalid(f"from {first} to {last} by {step}", "The range must have an end.")
    return Const(max(0, int(np.ceil(distance / step))))


def _ratio_length(op: Op) -> Expr | None:
    """The number of elements of a range between numbers that are computed from sizes."""
    first, last, step = ((ratios_in(op.value(i)) or (None,))[0] for i in range(3))
    if first is None or last is None or step is None or not variables(formula("a + b", a=first.num, b=last.num)):
        return None
    distance = total(last, first, -1)
    number = None if distance is None else quotient(distance, step)
    if number is None:
        return None
    op.sizes.counted(number)
    return simplify(formula("maximum(n, 0)", n=ceil(number).num))


def _length(op: Op, start: Expr, limit: Expr, delta: Expr) -> Expr:
    step = constant_value(delta)
    if step is None or step == 0:
        raise op.unsupported("the step is not a constant other than 0", "Bind the symbols it depends on.")
    text = "(limit - start + step - 1) // step" if step > 0 else "(start - limit - step - 1) // (-step)"
    return simplify(formula(f"maximum({text}, 0)", start=start, limit=limit, step=step))


@operator("EyeLike")
def _eye_like(op: Op) -> Value:
    like = op.value(0)
    if like.rank != 2:
        raise op.invalid(f"the input has rank {like.rank}, not 2")
    ttype = ELEMENT_TYPES.get(op.integer("dtype"), like.ttype)
    axes = op.axes_of(like.shape)
    row, column = (axis.var for axis in axes)
    one, zero = (True, False) if ttype == "bool" else (1, 0)
    body = formula("where(j - i == k, one, zero)", i=row, j=column, k=op.integer("k"), one=one, zero=zero)
    return op.emit(axes, body, ttype)


def _whole(op: Op, depth: float) -> int:
    if not np.isfinite(depth):
        raise op.invalid(f"a depth of {depth}")
    return int(depth)


@operator("OneHot")
def _one_hot(op: Op) -> Value:
    """`values[1]` where the index along the new axis equals that of `indices`, `values[0]` elsewhere."""
    indices, values = op.value(0), op.value(2)
    op.require_same(size_of(values.shape), Const(2), "the values for off and on")
    depth = op.single(1) if TTYPES[op.value(1).ttype].kind != "float" else Const(_whole(op, float(op.required(1))))
    axis = op.axis(op.integer("axis", -1), indices.rank + 1)
    axes = op.axes_of([*indices.shape[:axis], depth, *indices.shape[axis:]])
    rest = [a.var for d, a in enumerate(axes) if d != axis]
    at = indices.at(rest) if indices.ttype == "i64" else Call("i64", (indices.at(rest),))
    body = formula(
        "where(where(at < 0, at + depth, at) == i, on, off)",
        at=at,
        depth=depth,
        i=axes[axis].var,
        on=values.access([Const(1)]),
        off=values.access([Const(0)]),
    )
    return op.emit(axes, body, values.ttype)


@operator("Identity", "Dropout")
def _identity(op: Op) -> tuple[Value, ...]:
    """Dropout is the identity at inference; its mask is true everywhere."""
    x = op.value(0)
    if op.kind == "Dropout" and _trains(op):
        raise op.unsupported(
            "dropout in training mode: random numbers are kept to the reference", "Export the model for inference."
        )
    if not op.wants(1):
        return (x,)
    one, ttype = (True, "bool") if op.opset >= 10 else (1.0, x.ttype)
    return x, op.full(x.shape, one, ttype, output=1)


def _trains(op: Op) -> bool:
    mode, ratio = op.optional(2), op.optional(1)
    if mode is None or (mode.literal is not None and not mode.literal.value):
        return False
    return ratio is None or ratio.literal is None or bool(ratio.literal.value)
