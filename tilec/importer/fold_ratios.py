"""Partial evaluation of small tensors of sizes, element by element: reals as ratios, unknown elements as None."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product as points
from math import prod

from tilec.importer.ratio import (
    Ratio,
    as_real,
    ceil,
    extreme,
    floor,
    nearest,
    product,
    quotient,
    ratio_of,
    root,
    total,
    truncated,
)
from tilec.importer.value import Value, static
from tilec.ir.algebra import simplify, simplify_scalar
from tilec.ir.expr import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Reduce,
    TensorExpr,
    Var,
    constant_value,
    operands,
    substitute,
    variables,
)

MAX_ELEMENTS = 64
"""Maximal number of elements of a tensor that are ratios."""

TYPES = frozenset({"f32", "f64", "i64", "i32"})

Ratios = tuple[Ratio | None, ...]

_Known = Mapping[str, tuple[tuple[int, ...], Ratios]]


def fold_ratios(expr: TensorExpr, values: Mapping[str, Value], ttype: str) -> Ratios | None:
    """The elements of a small tensor as ratios of sizes; None where nothing is known of its operands."""
    domain, names = static(expr.extents), operands(expr)
    if ttype not in TYPES or domain is None or prod(domain) > MAX_ELEMENTS or isinstance(expr.body, Reduce):
        return None
    sizes = variables(expr.value) - set(expr.iterators)
    if not sizes and not any(_is_known_in_part(values[name]) for name in names):
        return None
    known: dict[str, tuple[tuple[int, ...], Ratios]] = {}
    for name in names:
        shape, ratios = static(values[name].shape), ratios_in(values[name])
        if shape is not None and ratios is not None:
            known[name] = (shape, ratios)
    elements = tuple(
        ratio_of_scalar(
            substitute(expr.value, {i: Const(p) for i, p in zip(expr.iterators, point, strict=True)}), known
        )
        for point in points(*(range(extent) for extent in domain))
    )
    return elements if any(element is not None for element in elements) else None


def _is_known_in_part(value: Value) -> bool:
    return value.ratios is not None or value.elements is not None or value.array is not None


def ratios_in(value: Value) -> Ratios | None:
    """What is known of the elements of a small tensor."""
    if value.ratios is not None:
        return value.ratios
    known = value.known()
    if known is not None:
        return tuple(Ratio(element) for element in known)
    if value.array is not None and value.array.size <= MAX_ELEMENTS and value.ttype in TYPES:
        return tuple(ratio_of(element) for element in value.array.ravel().tolist())
    return None


_BINARY: Mapping[str, Callable[[Ratio, Ratio], Ratio | None]] = {
    "+": total,
    "-": lambda a, b: total(a, b, -1),
    "*": product,
    "/": quotient,
}

_UNARY: Mapping[str, Callable[[Ratio], Ratio | None]] = {
    "f32": as_real,
    "f64": as_real,
    "i64": truncated,
    "i32": truncated,
    "floor": floor,
    "ceil": ceil,
    "round": nearest,
    "sqrt": root,
}


def ratio_of_scalar(expr: Expr, known: Mapping[str, tuple[tuple[int, ...], Ratios]]) -> Ratio | None:
    """A scalar body without iterators as a ratio."""
    match expr:
        case Var():
            return Ratio(expr)
        case Const(value):
            return ratio_of(value)
        case Access(tensor, index):
            return _element(known[tensor], index) if tensor in known else None
        case Binary(op, left, right) if op in _BINARY:
            a, b = ratio_of_scalar(left, known), ratio_of_scalar(right, known)
            return None if a is None or b is None else _BINARY[op](a, b)
        case Call("where", (condition, yes, no)):
            chosen = simplify_scalar(condition)
            return ratio_of_scalar(yes if chosen.value else no, known) if isinstance(chosen, Const) else None
        case Call("pow", (base, Const(0.5))):
            a = ratio_of_scalar(base, known)
            return None if a is None else root(a)
        case Call("maximum" | "minimum" as fn, (left, right)):
            a, b = ratio_of_scalar(left, known), ratio_of_scalar(right, known)
            return None if a is None or b is None else extreme(fn, a, b)
        case Call(fn, (argument,)) if fn in _UNARY:
            a = ratio_of_scalar(argument, known)
            return None if a is None else _UNARY[fn](a)
    return None


def _element(known: tuple[tuple[int, ...], Ratios], index: tuple[Expr, ...]) -> Ratio | None:
    shape, ratios = known
    flat = 0
    for each, extent in zip(index, shape, strict=True):
        place = constant_value(simplify(each))
        if place is None or not 0 <= place < extent:
            return None
        flat = flat * extent + place
    return ratios[flat]
