"""A reduction as partial results that are reduced in their turn: the algebra of spreading it over units (B11, W26).

Which units compute the partial results is no matter of this rewrite.  Where the edge between the two reductions is
connected at a core's level, threads of one core combine what each of them reduced; where it is not, tasks do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilec.ir.bind import simplify_tensor
from tilec.ir.expr import (
    NEUTRAL,
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Reduce,
    TensorExpr,
    Var,
    constant_value,
    substitute,
)
from tilec.ir.graph import Graph, Node, Tensor
from tilec.ir.scalars import is_weak, type_of
from tilec.ir.types import HALVES, is_float
from tilec.lower.promote_halves import PROMOTED_TTYPE
from tilec.scheduler.graph_passes.choose_layouts import reduce_order, spatial_order
from tilec.scheduler.graph_passes.rewrite import fresh, iterator_names


@dataclass(frozen=True, slots=True)
class AxisSplit:
    """How the reduce iterator at a `position` is shared by `parts` partial results (0: each of its values has one).

    Partial result j of P takes the elements j, P + j, 2*P + j ... of an `interleaved` iterator, else a run of
    neighbours.
    """

    position: int
    parts: int = 0
    interleaved: bool = False


ReductionSplit = tuple[AxisSplit, ...]
"""The axes that are split; all others are reduced by every partial result."""


@dataclass(frozen=True, slots=True)
class PartialReduction:
    """The two nodes of a reduction that was split, and the tensor between them."""

    partial: Node
    final: Node
    tensor: Tensor


def split_into_partials(
    node: Node, split: ReductionSplit, graph: Graph, constants: frozenset[str]
) -> PartialReduction | None:
    """A reduction as two; None where the axes cannot be split so.

    args:
        node: a reduction of the graph
        split: which reduce iterators are split, and into how many parts
    rewrite, for k = 768 interleaved and 32 parts:
        S[m] = sum(k, f(X[m, k]))
        -> S_partial1[m, k1] = sum(k2, f(X[m, k2*32 + k1]));  S[m] = sum(k1, S_partial1[m, k1])  k1 < 32, k2 < 24
    rewrite, for k = 100 in runs and 8 parts:
        -> S_partial1[m, k1] = sum(k2, where(k1*13 + k2 < 100, f(X[m, k1*13 + k2]), 0.0));  S[m] = ...  k2 < 13
    checks:
        something is left for partial results to reduce
        extents that are split into a number of parts are constants
        integers have no neutral element of max and min: parts divide these
    """
    expr, table = node.expr, graph.ttypes
    assert isinstance(expr.body, Reduce)
    kind = type_of(expr.value, table)
    ttype = graph.tensors[node.name].ttype if is_weak(kind) else kind
    if ttype in HALVES and expr.body.op in ("sum", "prod"):
        ttype = PROMOTED_TTYPE
        expr = replace(expr, body=replace(expr.body, body=Call(ttype, (expr.value,))))
    made = _partial(expr, split, ttype)
    if made is None:
        return None
    partial, shared = made
    partial = replace(partial, tensor=fresh(f"{node.name}_partial", graph.tensors))
    partial = _in_storage_order(partial, constants)
    reduce = tuple(i for i in partial.spatial if i in shared)
    domain = {**partial.domain, **expr.domain}
    access = Access(partial.tensor, tuple(map(Var, partial.spatial)))
    final = replace(
        expr,
        reduce=reduce,
        extents=tuple(domain[i] for i in (*expr.spatial, *reduce)),
        body=Reduce(expr.body.op, reduce, access),
    )
    tensor = Tensor(partial.shape, ttype)
    return PartialReduction(replace(node, expr=partial), replace(node, expr=simplify_tensor(final)), tensor)


def _partial(expr: TensorExpr, split: ReductionSplit, ttype: str) -> tuple[TensorExpr, frozenset[str]] | None:
    """The reduction of every part, and those of its spatial iterators that number parts; None where there is none."""
    assert isinstance(expr.body, Reduce)
    domain, taken = expr.domain, set(iterator_names(expr))
    at = {axis.position: axis for axis in split}
    parts: list[str] = []
    reduce: list[str] = []
    values: dict[str, Expr] = {}
    guards: list[Expr] = []
    for position, iterator in enumerate(expr.reduce):
        axis = at.get(position)
        if axis is None:
            reduce.append(iterator)
            continue
        if not axis.parts:
            parts.append(iterator)
            continue
        extent = constant_value(domain[iterator])
        if extent is None or not 1 < axis.parts <= extent:
            return None
        part = fresh(iterator, taken)
        step = fresh(iterator, taken | {part})
        taken |= {part, step}
        length = -(-extent // axis.parts)
        outer, inner, size = (step, part, axis.parts) if axis.interleaved else (part, step, length)
        values[iterator] = Binary("+", Binary("*", Var(outer), Const(size)), Var(inner))
        domain |= {part: Const(axis.parts), step: Const(length)}
        if length * axis.parts != extent:
            guards.append(Binary("<", values[iterator], Const(extent)))
        parts.append(part)
        reduce.append(step)
    if not parts or all(constant_value(domain[i]) == 1 for i in reduce):
        return None
    value = substitute(expr.body.body, values)
    if guards:
        neutral = _neutral(expr.body.op, ttype)
        if neutral is None:
            return None
        condition = guards[0]
        for guard in guards[1:]:
            condition = Binary("and", condition, guard)
        value = Call("where", (condition, value, neutral))
    spatial = (*parts, *expr.spatial)
    extents = tuple(domain[i] for i in (*spatial, *reduce))
    body = Reduce(expr.body.op, tuple(reduce), value)
    return simplify_tensor(TensorExpr(expr.tensor, spatial, tuple(reduce), extents, body)), frozenset(parts)


def _neutral(op: str, ttype: str) -> Const | None:
    """The neutral element of a reduction as a literal of a type; None where the type has none."""
    value = NEUTRAL[op]
    if is_float(ttype):
        return Const(value)
    return Const(int(value)) if op in ("sum", "prod") else None


def _in_storage_order(expr: TensorExpr, constants: frozenset[str]) -> TensorExpr:
    """The expression with its iterators in the order in which its operands are stored."""
    spatial, reduce = spatial_order(expr, {}, constants), reduce_order(expr, {}, constants)
    domain, body = expr.domain, expr.body
    assert isinstance(body, Reduce)
    extents = tuple(domain[i] for i in (*spatial, *reduce))
    return TensorExpr(expr.tensor, spatial, reduce, extents, replace(body, iterators=reduce))
