"""Expressions up to names: tensors and iterators renamed in order, so that equal computations have equal text.

Groups with equal text share a kernel (sub-graph cache; Welder, 4.2).
"""

from __future__ import annotations

from collections.abc import Mapping

from tilec.ir.bind import simplify_tensor
from tilec.ir.expr import Expr, Reduce, TensorExpr, Var, operands, rename_tensors, substitute
from tilec.ir.text import tensor_text, text_of


def canonical(expr: TensorExpr, names: Mapping[str, str], iterators: Mapping[str, str]) -> list[str]:
    """Text of `expr` and of its extents, with tensors and iterators renamed as given."""
    values: dict[str, Expr] = {old: Var(new) for old, new in iterators.items()}
    body = expr.body
    if isinstance(body, Reduce):
        body = Reduce(body.op, tuple(iterators[i] for i in body.iterators), substitute(body.body, values))
    else:
        body = substitute(body, values)
    plain = TensorExpr(
        names[expr.tensor],
        tuple(iterators[i] for i in expr.spatial),
        tuple(iterators[i] for i in expr.reduce),
        expr.extents,
        rename_tensors(body, names),
    )
    return [tensor_text(simplify_tensor(plain)), *(text_of(e) for e in expr.extents)]


def content(expr: TensorExpr) -> tuple[str, ...]:
    """Identity of the computation of `expr` up to the names of tensors and iterators: equal for equal computations."""
    names = {tensor: f"t{n}" for n, tensor in enumerate(dict.fromkeys((*operands(expr), expr.tensor)))}
    return tuple(canonical(expr, names, {i: f"i{n}" for n, i in enumerate(expr.iterators)}))
