"""NumPy evaluation of tensor expressions, over whole tensors and over boxes of windows.

The reference semantics: constants are folded with it, the tile machine executes with it, tests compare against it. A
sub-expression is evaluated only over the iterators it depends on; a sum of products is a matrix product; anything else
is split into pieces so that memory stays limited.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from tilec.ir.contract import contract
from tilec.ir.dots import DOTS, Dot, dot_of
from tilec.ir.expr import (
    NEUTRAL,
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Reduce,
    Scalar,
    TensorExpr,
    Var,
    variables,
    walk,
)
from tilec.ir.numpy_scalars import EXACT, Array, Value, apply, cast, elements, select, ttype_of, typed, widen
from tilec.ir.scalars import BITCASTS, is_weak, type_of
from tilec.ir.types import HALVES, TTYPES, is_float, numpy_dtype

MAX_ELEMENTS = 1 << 20
"""Maximal number of elements of an intermediate result; larger boxes are split."""

_NOTHING: Mapping[str, int] = MappingProxyType({})
_UNTYPED: Mapping[str, str] = MappingProxyType({})
_WEAK = {"weak int": "i64", "weak float": "f32", "weak bool": "bool"}
_PLAIN = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}
COMBINE = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
"""Reduction -> function that combines two partial results."""


@dataclass(frozen=True, slots=True)
class TensorWindow:
    """A window of a tensor: it starts at `lo` and has the shape of `array`."""

    array: Array
    lo: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Points:
    """The points of an iteration box; every iterator has its own axis.

    `box` gives [lo, hi) of the iterators in the order of the axes, `windows` the operands, `variables` the values of
    symbols and loop variables: a number, or an array with one value for every value of the first iterator.
    """

    box: Mapping[str, tuple[int, int]]
    windows: Mapping[str, TensorWindow]
    variables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of every axis."""
        return tuple(max(0, hi - lo) for lo, hi in self.box.values())

    def iterator(self, name: str) -> Array:
        """The values of an iterator along its axis; the other axes have extent 1."""
        lo, hi = self.box[name]
        axis = list(self.box).index(name)
        return np.arange(lo, max(lo, hi)).reshape([-1 if i == axis else 1 for i in range(len(self.box))])

    def variable(self, name: str) -> Array:
        """The value of a variable; axes along which it is constant have extent 1."""
        value = np.asarray(self.variables[name], np.int64)
        if value.ndim:
            value = value[slice(*next(iter(self.box.values())))]
        return value.reshape([-1, *[1] * (len(self.box) - 1)] if self.box else [])


def integer(expr: Expr, values: Mapping[str, Any]) -> Any:
    """Value of an integer expression (size, index, window end) for ints or integer arrays. Raises KeyError for an
    unbound variable."""
    match expr:
        case Const(value):
            return value
        case Var(name):
            return values[name]
        case Binary(op, left, right):
            a, b = integer(left, values), integer(right, values)
            if type(a) is int and type(b) is int and op in _PLAIN and (b or op in "+-*"):
                return _PLAIN[op](a, b)
            return apply(op, [a, b])
        case Call("where", (condition, yes, no)):
            chosen = select(*(integer(e, values) for e in (condition, yes, no)))
            return chosen if np.ndim(chosen) else np.asarray(chosen).item()
        case Call(fn, args):
            return apply(fn, [integer(a, values) for a in args])
    raise TypeError(f"not an integer expression: {expr}")


@lru_cache(maxsize=65536)
def affine(index: Expr) -> tuple[Mapping[str, int], int] | None:
    """(coefficient per variable, constant) of an affine index; None for any other index."""
    match index:
        case Const(int() as value):
            return {}, value
        case Var(name):
            return {name: 1}, 0
        case Binary("*", inner, Const(int() as factor)) | Binary("*", Const(int() as factor), inner):
            form = affine(inner)
            return None if form is None else ({i: c * factor for i, c in form[0].items()}, form[1] * factor)
        case Binary("+" | "-" as op, left, right):
            one, other = affine(left), affine(right)
            if one is None or other is None:
                return None
            sign = 1 if op == "+" else -1
            names = one[0].keys() | other[0].keys()
            sums = {i: one[0].get(i, 0) + sign * other[0].get(i, 0) for i in sorted(names)}
            return sums, one[1] + sign * other[1]
    return None


def _viewed(access: Access, points: Points) -> Array | None:
    """An affine access that stays inside its window as a strided view without a copy; None for any other."""
    window = points.windows[access.tensor]
    axis = {name: i for i, name in enumerate(points.box)}
    shape, strides = [1] * len(axis), [0] * len(axis)
    begin: list[int] = []
    for index, lo, size, step in zip(access.index, window.lo, window.array.shape, window.array.strides, strict=True):
        form = affine(index)
        if form is None:
            return None
        first = last = begin_here = form[1] - lo
        for name, coefficient in form[0].items():
            if name not in axis:
                low = high = points.variables[name]
                if np.ndim(low):
                    return None
            else:
                low, high = points.box[name][0], points.box[name][1] - 1
                if high < low:
                    return None
                shape[axis[name]] = high - low + 1
                strides[axis[name]] += coefficient * step
            begin_here += coefficient * low
            first += min(coefficient * low, coefficient * high)
            last += max(coefficient * low, coefficient * high)
        if first < 0 or last >= size:
            return None
        begin.append(begin_here)
    corner = window.array[tuple(slice(b, None) for b in begin)]
    if corner.dtype.itemsize > 1:
        return np.lib.stride_tricks.as_strided(corner, shape, strides, writeable=False)
    octets = corner.view(np.uint8)  # NumPy does not understand the names of all types of ml_dtypes
    return np.lib.stride_tricks.as_strided(octets, shape, strides, writeable=False).view(corner.dtype)


def _gather(access: Access, points: Points) -> Array:
    """An access with arbitrary indices. Indices outside the window are clipped, since guards select another value
    there."""
    window = points.windows[access.tensor]
    parts = [np.asarray(scalar_value(i, points)).astype(np.int64) for i in access.index]
    if window.array.size == 0:
        return np.zeros(np.broadcast_shapes(*(p.shape for p in parts)), window.array.dtype)
    clipped = [np.clip(p - lo, 0, n - 1) for p, lo, n in zip(parts, window.lo, window.array.shape, strict=True)]
    taken = _taken(window.array, clipped)
    return np.asarray(window.array[tuple(clipped)]) if taken is None else taken


def _taken(array: Array, parts: Sequence[Array]) -> Array | None:
    """The elements at indices that move along axes of their own, dimension by dimension, which is many times as fast as
    element by element; None for others."""
    axes = [[axis for axis, n in enumerate(part.shape) if n != 1] for part in parts]
    order = [axis for each in axes for axis in each]
    if len(set(order)) != len(order):
        return None
    grown = sorted(range(len(parts)), key=lambda dim: parts[dim].size / array.shape[dim])
    for dim in grown:
        array = array.take(parts[dim].ravel(), axis=dim)
    shape = [part.shape[axis] for part, each in zip(parts, axes, strict=True) for axis in each]
    moved = array.reshape(shape).transpose(np.argsort(order))
    return moved.reshape(np.broadcast_shapes(*(part.shape for part in parts)))


def scalar_value(expr: Expr, points: Points) -> Value:
    """Values of a scalar body at every point, with extent 1 along iterators it does not depend on; a literal remains a
    literal."""
    match expr:
        case Const(value):
            return value
        case Var(name) if name in points.box:
            return points.iterator(name)
        case Var(name):
            return points.variable(name)
        case Access():
            viewed = _viewed(expr, points)
            elements = _gather(expr, points) if viewed is None else viewed
            return elements if elements.ndim else elements.reshape([1] * len(points.box))
        case Binary(op, left, right):
            return apply(op, _arguments((left, right), points))
        case Call("where", (condition, yes, no)):
            return select(scalar_value(condition, points), *_arguments((yes, no), points))
        case Call(fn, (operand,)) if fn in TTYPES:
            return cast(widen(scalar_value(operand, points)), numpy_dtype(fn))
        case Call(fn, (operand,)) if fn in BITCASTS:
            kind = type_of(operand, {t: ttype_of(w.array.dtype) for t, w in points.windows.items()})
            return cast(scalar_value(operand, points), numpy_dtype(kind)).view(numpy_dtype(BITCASTS[fn]))
        case Call(fn, args):
            return apply(fn, _arguments(args, points))
    raise TypeError(f"not a scalar: {expr}")


def _arguments(args: Sequence[Expr], points: Points) -> list[Value]:
    """Values of the arguments of a function. Arithmetic of literals rounds in the floating-point type that they adopt
    from another argument, as in kernels."""
    values = [scalar_value(a, points) for a in args]
    adopted = next((np.asarray(widen(v)).dtype for v in values if isinstance(v, np.ndarray)), None)
    if adopted is None or adopted.kind != "f":
        return values
    computed = [isinstance(v, float) and not isinstance(a, Const) for a, v in zip(args, values, strict=True)]
    return [_literal(a, adopted) if c else v for a, v, c in zip(args, values, computed, strict=True)]


def _literal(expr: Expr, dtype: np.dtype[Any]) -> Array:
    """An expression of literals alone, in this type."""
    match expr:
        case Binary(op, left, right):
            return np.asarray(apply(op, [_literal(left, dtype), _literal(right, dtype)]))
        case Call("where", (condition, yes, no)):
            return np.asarray(select(_literal(condition, dtype), _literal(yes, dtype), _literal(no, dtype)))
        case Call(fn, args):
            return np.asarray(apply(fn, [_literal(a, dtype) for a in args]))
        case Const(value):
            return cast(value, dtype)
    raise TypeError(f"not a literal: {expr}")


def neutral(op: str, dtype: np.dtype[Any]) -> Any:
    """The neutral element of a reduction in this type."""
    if op in ("max", "min") and dtype.kind in "biu":
        if dtype.kind == "b":
            return op == "min"
        limits = np.iinfo(dtype)
        return limits.min if op == "max" else limits.max
    return dtype.type(NEUTRAL[op])


@lru_cache(maxsize=65536)
def factors(expr: Expr) -> tuple[Expr, ...]:
    """The factors of a product, left to right."""
    if isinstance(expr, Binary) and expr.op == "*":
        return factors(expr.left) + factors(expr.right)
    return (expr,)


@lru_cache(maxsize=16384)
def _supports(expr: TensorExpr) -> tuple[frozenset[str], ...]:
    """Iterators of every intermediate array that evaluation allocates; only the maximal sets."""
    iterators = frozenset(expr.iterators)
    roots = _factors(expr)
    supports = {
        variables(part) & iterators
        for root in roots
        for part in walk(root)
        if not isinstance(part, Const | Var) and not _is_view(part)
    }
    return tuple(s for s in supports if not any(s < other for other in supports))


def _is_view(expr: Expr) -> bool:
    """Whether an expression is an unpermuted part of a tensor: no larger than the tensor even when it is copied."""
    forms = [affine(i) for i in expr.index] if isinstance(expr, Access) else [None]
    used = [i for form in forms if form is not None for i in form[0]]
    return len(set(used)) == len(used) and all(form is not None and len(form[0]) <= 1 for form in forms)


def _split(expr: TensorExpr, box: Mapping[str, tuple[int, int]]) -> str | None:
    """The iterator to halve so that intermediate arrays shrink below MAX_ELEMENTS; None when they are small enough."""
    extents = {name: hi - lo for name, (lo, hi) in box.items()}
    largest = max(_supports(expr), key=lambda s: prod(extents[i] for i in s), default=frozenset[str]())
    if prod(extents[i] for i in largest) <= MAX_ELEMENTS:
        return None
    return next(i for i in expr.iterators if i in largest and extents[i] > 1)


def _factors(expr: TensorExpr) -> tuple[Expr, ...]:
    """What a sum adds products of: the factors of its body, or the words of a dot function; else the body."""
    value = expr.value
    if expr.reducer != "sum":
        return (value,)
    return value.args if isinstance(value, Call) and value.fn in DOTS else factors(value)


def _dots(function: Dot, words: Sequence[Expr], points: Points, dtype: np.dtype[Any], spatial: int) -> Array:
    """The sum of dot products over one piece. Integers are summed as f64, exactly: a piece has too few for more than 53
    bits."""
    wide = np.dtype(np.float64) if dtype.kind == "i" else dtype
    values = []
    for part, ttype in zip(words, function.inputs, strict=True):
        word = np.asarray(scalar_value(part, points))
        values.append(elements(word.reshape(word.shape or [1] * len(points.box)), ttype).astype(wide))
    total = contract(values, (*points.shape, function.count), spatial)
    return total.astype(np.int64).astype(dtype) if dtype.kind == "i" else total


def _reduce(expr: TensorExpr, reducer: str, points: Points, dtype: np.dtype[Any]) -> Array:
    """The reduction over one piece, an array over the spatial axes."""
    axes = tuple(range(len(expr.spatial), len(points.box)))
    parts = _factors(expr)
    if reducer == "sum" and isinstance(expr.value, Call) and expr.value.fn in DOTS:
        return _dots(DOTS[expr.value.fn], parts, points, dtype, len(expr.spatial))
    values = [np.asarray(widen(typed(scalar_value(part, points), dtype))) for part in parts]
    values = [v.reshape([1] * len(points.box)) if v.ndim == 0 else v for v in values]
    if len(values) > 1:
        return contract(values, points.shape, len(expr.spatial))
    (value,) = values
    whole = np.broadcast_to(value, points.shape)
    if not axes:
        return whole
    first = neutral(reducer, value.dtype)
    if reducer in ("sum", "prod"):
        return np.asarray(COMBINE[reducer].reduce(whole, axis=axes, dtype=value.dtype, initial=first))
    return np.asarray(COMBINE[reducer].reduce(whole, axis=axes, initial=first))


def _into(out: Array, expr: TensorExpr, points: Points) -> None:
    name = _split(expr, points.box)
    if name is None:
        reducer = expr.reducer
        if reducer is None:
            value = typed(scalar_value(expr.value, points), out.dtype)
            out[...] = np.broadcast_to(value, points.shape)
        else:
            out[...] = _reduce(expr, reducer, points, out.dtype)
        return
    lo, hi = points.box[name]
    middle = (lo + hi) // 2
    first = Points({**points.box, name: (lo, middle)}, points.windows, points.variables)
    second = Points({**points.box, name: (middle, hi)}, points.windows, points.variables)
    if name in expr.spatial:
        before = (slice(None),) * expr.spatial.index(name)
        _into(out[(*before, slice(0, middle - lo))], expr, first)
        _into(out[(*before, slice(middle - lo, None))], expr, second)
        return
    rest = np.empty_like(out)
    _into(out, expr, first)
    _into(rest, expr, second)
    COMBINE[str(expr.reducer)](out, rest, out=out)


def evaluate_box(expr: TensorExpr, points: Points, ttype: str | None = None) -> Array:
    """The expression over a box, an array of the spatial extents; the box may cover a part of a reduction.

    `ttype` is the type of the result, by default the body's (f32, i64 or bool for literals). f16 and bf16 are computed
    in f32 and rounded once, at the end; sums over words that are wanted in f64 are computed in it. Raises TypeError for
    a body that has no type.
    """
    box = {i: points.box[i] for i in expr.iterators}
    ordered = Points(box, points.windows, points.variables)
    kind = type_of(expr.body, {t: ttype_of(w.array.dtype) for t, w in points.windows.items()})
    dtype = numpy_dtype(ttype or _WEAK.get(kind, kind))
    body = dtype if is_weak(kind) else numpy_dtype(kind)
    compute = np.asarray(widen(np.empty(0, body))).dtype if expr.reducer else body
    if dot_of(expr.value) and dtype == np.float64:
        compute = dtype
    moved = np.empty(ordered.shape[: len(expr.spatial)], compute)
    with np.errstate(all="ignore"):
        if moved.size:
            _into(moved, expr, ordered)
        return cast(moved, dtype)


def evaluate(
    expr: TensorExpr, arrays: Mapping[str, Array], symbols: Mapping[str, int] = _NOTHING, ttype: str | None = None
) -> Array:
    """The whole tensor that the expression defines, from whole operands.

    `symbols` binds symbolic sizes. Raises KeyError for a missing operand or symbol, TypeError for a body that has no
    type.
    """
    box = {i: (0, int(integer(extent, symbols))) for i, extent in expr.domain.items()}
    reads = {a.tensor for a in walk(expr.body) if isinstance(a, Access)}
    windows = {t: TensorWindow(np.asarray(arrays[t]), (0,) * np.ndim(arrays[t])) for t in sorted(reads)}
    return evaluate_box(expr, Points(box, windows, symbols), ttype)


def literal_value(expr: Expr, ttype: str) -> Scalar:
    """The value of an expression of literals alone in a type; one without a type of its own stays in f32 where that is
    half precision. What compiles code would compute some such expressions its own way, and refuses others: quotients by
    0, unsigned numbers that wrap."""
    wide = "f32" if ttype in HALVES and is_weak(type_of(expr, _UNTYPED)) else ttype
    with np.errstate(all="ignore"):
        stepwise = _stepwise(expr, numpy_dtype(wide)) if is_float(wide) else None
        whole = evaluate(TensorExpr("", (), (), (), expr), {}, ttype=wide) if stepwise is None else stepwise
    value: Scalar = whole.item()
    return value


def _stepwise(expr: Expr, dtype: np.dtype[Any]) -> Array | None:
    """The value of sums, products and quotients of literals, every one rounded to a type, as onnxruntime multiplies and
    divides the scales of a quantised product; None for any other expression."""
    match expr:
        case Const(float() | int() as number) if not isinstance(number, bool):
            return np.asarray(number, dtype)
        case Binary("+" | "-" | "*" | "/" as op, left, right):
            a, b = _stepwise(left, dtype), _stepwise(right, dtype)
            return None if a is None or b is None else np.asarray(_STEPS[op](a, b))
    return None


_STEPS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


def exactly_rounded(expr: Expr | TensorExpr, ttypes: Mapping[str, str] = _UNTYPED) -> bool:
    """Whether the result is bit-identical on every machine, so that a constant may be folded at import.

    Movement, casts, integer arithmetic and correctly rounded operations are; reductions, `pow`, `maximum` and `minimum`
    are when they run over integers according to `ttypes`.
    """
    root = expr.body if isinstance(expr, TensorExpr) else expr
    for part in walk(root):
        match part:
            case Reduce() | Call("pow" | "maximum" | "minimum"):
                if not _is_integral(part, ttypes):
                    return False
            case Binary(op, _, _) | Call(op, _):
                if op not in EXACT and op not in TTYPES:
                    return False
    return True


def _is_integral(expr: Expr, ttypes: Mapping[str, str]) -> bool:
    try:
        kind = type_of(expr, ttypes)
    except (KeyError, TypeError):
        return False
    return kind in ("weak int", "weak bool") or (not is_weak(kind) and not is_float(kind))
