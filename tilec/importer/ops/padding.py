"""Pad in all its modes: guards for a constant, index algebra for the others."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr, bound
from tilec.ir.types import TTYPES

MODES = {
    "edge": "maximum(minimum(i, size - 1), 0)",
    "reflect": "size - 1 - maximum(size - 1 - maximum(i, -i), maximum(i, -i) - size + 1)",
    "wrap": "i % size",
}
"""Mode -> the index inside the tensor for one that may lie outside."""


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
    index = [formula("i - b", i=a.var, b=b) for a, b in zip(axes, before, strict=True)]
    mode = op.text("mode", "constant")
    if mode == "constant":
        return op.emit(axes, _filled(op, x, index, before, after), x.ttype)
    if mode not in MODES:
        raise op.invalid(f"mode is {mode!r}", "It must be constant, edge, reflect or wrap.")
    inside = [
        i if b == Const(0) == a else formula(MODES[mode], i=i, size=e)
        for i, b, a, e in zip(index, before, after, x.shape, strict=True)
    ]
    return op.emit(axes, x.at(inside), x.ttype)


def _filled(op: Op, x: Value, index: list[Expr], before: list[Expr], after: list[Expr]) -> Expr:
    body: Expr = x.access(index)
    conditions = []
    for i, low, high, size in zip(index, before, after, x.shape, strict=True):
        if (bound(low) or 0) > 0 or bound(low) is None:
            conditions.append(formula("i >= 0", i=i))
        if (bound(high) or 0) > 0 or bound(high) is None:
            conditions.append(formula("i < size", i=i, size=size))
    if not conditions:
        return body
    every = conditions[0]
    for condition in conditions[1:]:
        every = formula("a and b", a=every, b=condition)
    value = op.optional(2)
    if value is not None:
        fill = value.literal if value.literal is not None else value.access([Const(0)] * value.rank)
    else:
        fill = Const({"float": op.number("value"), "bool": False}.get(TTYPES[x.ttype].kind, int(op.number("value"))))
    return formula("where(c, x, fill)", c=every, x=body, fill=fill)
