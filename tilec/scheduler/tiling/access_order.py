"""How the accesses of an expression follow its iterators: in steps, in the order of the result, each element once."""

from __future__ import annotations

from tilec.ir.algebra import linear_form
from tilec.ir.expr import Access, Const, Expr, TensorExpr, Var, constant_value, variables


def is_strided(access: Access, moving: frozenset[str]) -> bool:
    """Whether iterators move an index by more than one element at a time."""
    terms = (term for index in access.index for term in linear_form(index)[0].items())
    return any(abs(stride) != 1 and not moving.isdisjoint(variables(atom)) for atom, stride in terms)


def reads_as_made(access: Access, expr: TensorExpr) -> bool:
    """Whether an access reads a tensor in the order in which a node makes its own, an element for each."""
    moving = [i for i, e in zip(expr.spatial, expr.shape, strict=True) if constant_value(e) != 1]
    return [index.name for index in access.index if isinstance(index, Var) and index.name in moving] == moving and all(
        isinstance(index, Var | Const) for index in access.index
    )


def reads_once(access: Access, expr: TensorExpr) -> bool:
    """Whether a reduction reads no element twice: no iterator moves two indices, and each index is one to one."""
    moving = [variables(index) for index in access.index]
    iterators = {i for i, e in expr.domain.items() if constant_value(e) != 1}
    together = frozenset().union(*moving)
    apart = sum(map(len, moving)) == len(together)
    return bool(expr.reduce) and apart and iterators <= together and all(_one_to_one(i, expr) for i in access.index)


def _one_to_one(index: Expr, expr: TensorExpr) -> bool:
    """Whether an index is affine and differs for all values of its iterators, as digits of a number do."""
    terms, _ = linear_form(index)
    domain = expr.domain
    values: int | None = 1
    for atom, stride in sorted(terms.items(), key=lambda term: abs(term[1])):
        if values is None or not isinstance(atom, Var) or atom.name not in domain or abs(stride) < values:
            return False
        extent = constant_value(domain[atom.name])
        values = None if extent is None else values + abs(stride) * (extent - 1)
    return True


def ranging(expr: TensorExpr) -> frozenset[str]:
    """Spatial iterators with an extent other than 1."""
    return frozenset(i for i, e in zip(expr.spatial, expr.shape, strict=True) if constant_value(e) != 1)
