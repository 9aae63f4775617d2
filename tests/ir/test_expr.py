"""Expressions as keys of caches."""

from __future__ import annotations

import pickle

from tilec.ir.expr import Access, Binary, Call, Const, Expr, Var


def test_a_hash_walks_shared_parts_once() -> None:
    expr: Expr = Var("n")
    for _ in range(100):
        expr = Call("maximum", (Binary("+", expr, expr), Access("x", (expr, Const(1)))))
    assert hash(expr) == hash(Call("maximum", expr.args)) if isinstance(expr, Call) else False


def test_hashes_stay_in_their_process() -> None:
    """Those of strings differ from process to process."""
    expr = Binary("+", Var("n"), Const(1))
    hash(expr)
    copy = pickle.loads(pickle.dumps(expr))
    assert hasattr(expr, "_hash")
    assert not hasattr(copy, "_hash")
    assert (copy, hash(copy)) == (expr, hash(expr))
