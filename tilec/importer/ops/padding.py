"""Pad in all its modes: guards for a constant, index algebra for the others."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, constant_value
from tilec.ir.types import TTYPES

MODES = {
    "edge": "maximum(minimum(i, size - 1), 0)",
    "reflect": "minimum(size - 1, minimum(i % maximum(2 * size - 2, 1), 2 * size - 2 - i % maximum(2 * size - 2, 1)))",
    "wrap": "i % size",
}
"""Mode -> the index inside the tensor of an index that may lie outside."""

REFLECT_ONCE = "size - 1 - maximum(size - 1 - maximum(i, -i), maximum(i, -i) - size + 1)"
"""Reflection by less than the extent, which stays affine within a tile."""


@operator("Pad")
def _pad(op: Op) -> Value:
    x = op.value(0)
    pads = op.setting(1, "pads")
    if pads is None:
        raise op.invalid("the padding is missing")
    given = op.axes_in_order(3, x.rank) or tuple(range(x.rank))
    if len(pads) != 2 * len(given):
        raise op.invalid(f"{len(pads)} paddings for {len(given)} axes")
    before: list[Expr] = [Const(0)] * x.rank
    after: list[Expr] = [Const(0)] * x.rank
    for number, axis in enumerate(given):
        before[axis], after[axis] = pads[number], pads[len(given) + number]
    if all(p == Const(0) for p in (*before, *after)):
        return x
    text = "maximum(b + size + a, 0)"
    shape = [simplify(formula(text, b=b, size=e, a=a)) for b, e, a in zip(before, x.shape, after, strict=True)]
    axes = op.axes_of(shape)
    mode = op.text("mode", "constant")
    if mode == "constant":
        index = [formula("i - b", i=a.var, b=b) for a, b in zip(axes, before, strict=True)]
        return op.emit(axes, _filled(op, x, index, before, after), x.ttype)
    if mode not in MODES:
        raise op.invalid(f"mode is {mode!r}", "It must be constant, edge, reflect or wrap.")
    places = zip(axes, before, after, x.shape, strict=True)
    return op.emit(axes, x.at([_repeated_index(op, mode, a.var, b, c, e) for a, b, c, e in places]), x.ttype)


def _repeated_index(op: Op, mode: str, i: Expr, before: Expr, after: Expr, extent: Expr) -> Expr:
    """The index repeated by element i of a padded dimension. Negative padding crops before anything is repeated. An
    extent that varies has the elements that are repeated, one, or as many as are reflected."""
    first, last = (simplify(formula("maximum(-p, 0)", p=p)) for p in (before, after))
    low, high = (simplify(formula("maximum(p, 0)", p=p)) for p in (before, after))
    if low == Const(0) == high:
        return formula("i + first", i=i, first=first)
    size = simplify(formula("e - first - last", e=extent, first=first, last=last))
    known, reach = constant_value(size), max(constant_value(low) or 0, constant_value(high) or 0)
    if known is not None and known < 1:
        raise op.invalid(f"mode {mode!r} over a dimension without elements", "There is nothing to repeat.")
    decided = constant_value(low) is not None and constant_value(high) is not None
    if known is None:
        least = 1 + reach if mode == "reflect" and decided else 1
        op.sizes.assume(Binary(">=", size, Const(least)), f"mode {mode!r} repeats elements")
    once = mode == "reflect" and decided and (known is None or reach < known)
    text = REFLECT_ONCE if once else MODES[mode]
    return formula("first + k", first=first, k=formula(text, i=formula("i - b", i=i, b=low), size=size))


def _filled(op: Op, x: Value, index: list[Expr], before: list[Expr], after: list[Expr]) -> Expr:
    body: Expr = x.access(index)
    conditions = []
    for i, low, high, size in zip(index, before, after, x.shape, strict=True):
        if (constant_value(low) or 0) > 0 or constant_value(low) is None:
            conditions.append(formula("i >= 0", i=i))
        if (constant_value(high) or 0) > 0 or constant_value(high) is None:
            conditions.append(formula("i < size", i=i, size=size))
    if not conditions:
        return body
    every = conditions[0]
    for condition in conditions[1:]:
        every = formula("a and b", a=every, b=condition)
    fill = op.element(2)
    if fill is None:
        fill = Const({"float": op.number("value"), "bool": False}.get(TTYPES[x.ttype].kind, int(op.number("value"))))
    return formula("where(c, x, fill)", c=every, x=body, fill=fill)
