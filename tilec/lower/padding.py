"""Redundant guards: a staged window filled with a guard's constant replaces the guard "inside the tensor"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from tilec.ir.algebra import bounds_of, simplify
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Reduce, Scalar, TensorExpr, rebuild, walk
from tilec.ir.reads import at_least_zero

Shapes = Mapping[str, Sequence[Expr]]


def fill_of(expr: TensorExpr, tensor: str, shape: tuple[Expr, ...]) -> Const | None:
    """The constant that may surround `tensor` for this expression, or None.

    It is the literal beside the access in `where(index inside the tensor, tensor[index], literal)`, if every access of
    the tensor that may leave it has that form with the same literal.
    """
    return _fill_of(expr, tensor, shape)


@lru_cache(maxsize=8192)
def _fill_of(expr: TensorExpr, tensor: str, shape: tuple[Expr, ...]) -> Const | None:
    fills: set[Const] = set()
    covered: list[Access] = []
    for part in walk(expr.value):
        access, _, fill = _guarded_access(part, tensor, shape)
        if access is not None and fill is not None:
            fills.add(fill)
            covered.append(access)
    ranges = {i: (Const(0), simplify(Binary("-", n, Const(1)))) for i, n in expr.domain.items()}
    for part in walk(expr.value):
        bare = isinstance(part, Access) and part.tensor == tensor and not any(part is a for a in covered)
        if bare and isinstance(part, Access) and not _stays_inside(part, shape, ranges):
            return None
    return fills.pop() if len(fills) == 1 else None


def unguarded(expr: TensorExpr, filled: Mapping[str, Scalar], shapes: Shapes) -> TensorExpr:
    """The expression without the guards of tensors that are read from buffers filled with the guards' constant.

    rewrite: `where(index inside the tensor and rest, tensor[index], literal) -> where(rest, tensor[index], literal)`
    """

    def strip(part: Expr) -> Expr:
        for tensor, value in filled.items():
            access, rest, fill = _guarded_access(part, tensor, tuple(shapes[tensor]))
            if access is not None and fill == Const(value) and isinstance(part, Call):
                return Call("where", (rest, access, fill)) if rest is not None else access
        return rebuild(part, strip)

    if not filled:
        return expr
    body = strip(expr.value)
    if isinstance(expr.body, Reduce):
        body = Reduce(expr.body.op, expr.body.iterators, body)
    return TensorExpr(expr.tensor, expr.spatial, expr.reduce, expr.extents, body)


def _guarded_access(
    part: Expr, tensor: str, shape: tuple[Expr, ...]
) -> tuple[Access | None, Expr | None, Const | None]:
    """For `where(condition, tensor[index], literal)`: the access, the conjuncts of the condition beyond "inside the
    tensor" (None: none), and the literal; the access is None if the condition does not imply "inside the tensor"."""
    match part:
        case Call("where", (condition, Access(name, index) as access, Const() as fill)) if name == tensor:
            more = beyond_guard(condition, index, shape)
            if more is None:
                return None, None, None
            rest: Expr | None = None
            for conjunct in more:
                rest = conjunct if rest is None else Binary("and", rest, conjunct)
            return access, rest, fill
    return None, None, None


def beyond_guard(condition: Expr, index: tuple[Expr, ...], shape: tuple[Expr, ...]) -> list[Expr] | None:
    """Conjuncts of a condition beyond those that keep an index inside a shape; None where no conjunct does that."""
    inside = {simplify(i) for i in index}
    inside |= {_from_end(i, extent) for i, extent in zip(index, shape, strict=True)}
    conjuncts = _conjuncts(condition)
    more = [c for c in conjuncts if not _all_in(c, inside)]
    return None if len(more) == len(conjuncts) else more


def _from_end(index: Expr, extent: Expr) -> Expr:
    return simplify(Binary("-", Binary("-", extent, Const(1)), index))


def _conjuncts(condition: Expr) -> list[Expr]:
    if isinstance(condition, Binary) and condition.op == "and":
        return [*_conjuncts(condition.left), *_conjuncts(condition.right)]
    return [condition]


def _all_in(conjunct: Expr, inside: set[Expr]) -> bool:
    parts = at_least_zero(conjunct)
    return len(parts) == 1 and parts[0] in inside


def _stays_inside(access: Access, shape: tuple[Expr, ...], ranges: Mapping[str, tuple[Expr, Expr]]) -> bool:
    for index, extent in zip(access.index, shape, strict=True):
        if any(isinstance(e, Access) for e in walk(index)):
            continue
        low = bounds_of(index, ranges)[0]
        slack = bounds_of(_from_end(index, extent), ranges)[0]
        if low is None or low < 0 or slack is None or slack < 0:
            return False
    return True
