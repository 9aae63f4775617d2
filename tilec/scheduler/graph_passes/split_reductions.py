"""Reduce iterators split so that `k // c` and `k % c`, left behind by merged dimensions, become affine."""

from __future__ import annotations

from dataclasses import replace

from tilec.ir.algebra import simplify
from tilec.ir.bind import simplify_tensor
from tilec.ir.expr import Binary, Const, Expr, Reduce, TensorExpr, Var, substitute, walk
from tilec.scheduler.graph_passes.rewrite import fresh, iterator_names


def split_reductions(expr: TensorExpr) -> TensorExpr:
    """The same reduction over `k = k1*c + k2` in place of k, for every divisor c of k's extent that occurs.

    args:
        expr: an expression with any reduction, or none
    rewrite:
        Y[s, n] = sum(k, C[k // 64, s, k % 64] * W[k, n])  k < 768
        -> Y[s, n] = sum(k1, k2, C[k1, s, k2] * W[k1*64 + k2, n])  k1 < 12, k2 < 64
    checks:
        c is a constant that divides the extent of k
    """
    while (division := _divided(expr)) is not None:
        expr = _split(expr, *division)
    return expr


def _divided(expr: TensorExpr) -> tuple[str, int] | None:
    """A reduce iterator and the largest proper divisor of its extent by which some index divides it; None if there is
    none."""
    domain = expr.domain
    pairs: list[tuple[str, int]] = []
    for part in walk(expr.value):
        match part:
            case Binary("//" | "%", Var(name), Const(int() as c)) if name in expr.reduce and c > 1:
                if simplify(Binary("%", domain[name], Const(c))) == Const(0) and domain[name] != Const(c):
                    pairs.append((name, c))
            case _:
                pass
    return max(pairs, key=lambda pair: pair[1], default=None)


def _split(expr: TensorExpr, name: str, divisor: int) -> TensorExpr:
    taken = set(iterator_names(expr))
    outer = fresh(name, taken)
    inner = fresh(name, taken | {outer})
    value: dict[str, Expr] = {name: Binary("+", Binary("*", Var(outer), Const(divisor)), Var(inner))}
    at = expr.reduce.index(name)
    reduce = (*expr.reduce[:at], outer, inner, *expr.reduce[at + 1 :])
    domain = expr.domain
    domain[outer] = simplify(Binary("//", domain[name], Const(divisor)))
    domain[inner] = Const(divisor)
    body = expr.body
    assert isinstance(body, Reduce)
    return simplify_tensor(
        replace(
            expr,
            reduce=reduce,
            extents=tuple(domain[i] for i in expr.spatial + reduce),
            body=Reduce(body.op, reduce, substitute(body.body, value)),
        )
    )
