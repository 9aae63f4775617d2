"""Forms: index arithmetic as the contents of tensors, canonical bodies, and bodies that list known elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilec.importer.formula import formula
from tilec.importer.index_arithmetic import index_arithmetic
from tilec.importer.value import position
from tilec.ir.algebra import simplify
from tilec.ir.bind import simplify_tensor
from tilec.ir.expr import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Reduce,
    TensorExpr,
    Var,
    accesses,
    rebuild,
    substitute,
    variables,
    walk,
)

MAX_FORM_SIZE = 32
"""Maximal number of sub-expressions of a form; larger ones are read from their tensor instead of being repeated."""

INT64_LIMIT = 1 << 63
"""Exclusive upper limit of 64-bit integers."""


def tidied(expr: Expr) -> Expr:
    """Index arithmetic outside of accesses in canonical form (`simplify_tensor` handles the inside), except where the
    canonical form has numbers of more than 64 bits: the original form wraps around."""
    if isinstance(expr, Access | Const | Var):
        return expr
    if all(_is_arithmetic(e) for e in walk(expr)):
        canonical = simplify(expr)
        return (
            canonical
            if all(-INT64_LIMIT <= e.value < INT64_LIMIT for e in walk(canonical) if isinstance(e, Const))
            else expr
        )
    return rebuild(expr, tidied)


def _is_arithmetic(expr: Expr) -> bool:
    match expr:
        case Const(value):
            return isinstance(value, int) and not isinstance(value, bool)
        case Binary(op, _, _):
            return op in ("+", "-", "*", "//", "%")
        case _:
            return isinstance(expr, Var)


def form_of(expr: TensorExpr, ttype: str) -> Expr | None:
    """The body as a form (see `Value`): a literal, or index arithmetic of type i64 or bool."""
    body = expr.body
    if isinstance(body, Const):
        return body
    if isinstance(body, Reduce) or ttype not in ("i64", "bool") or accesses(body):
        return None
    if sum(1 for _ in walk(body)) > MAX_FORM_SIZE:
        return None
    written = index_arithmetic(body)
    return None if written is None else substitute(written, {i: Var(position(d)) for d, i in enumerate(expr.spatial)})


def chosen(index: Expr, elements: Sequence[Expr]) -> Expr:
    """`elements[index]` as nested selections; 0 when there are none."""
    body: Expr = elements[-1] if elements else Const(0)
    for number, element in reversed(list(enumerate(elements[:-1]))):
        body = formula("where(i == number, element, body)", i=index, number=number, element=element, body=body)
    return body


def listed(expr: TensorExpr, elements: Sequence[Expr], ttype: str) -> TensorExpr:
    """The same tensor written from its elements, without operands."""
    flat: Expr = Const(0)
    for i, extent in zip(expr.spatial, expr.shape, strict=True):
        flat = formula("flat * extent + i", flat=flat, extent=extent, i=Var(i))
    body = chosen(flat, elements)
    if ttype == "i32" and variables(body):
        body = Call("i32", (body,))
    return simplify_tensor(replace(expr, reduce=(), extents=expr.shape, body=body))
