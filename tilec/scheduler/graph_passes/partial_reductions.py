"""A reduction as partial results that are reduced in their turn: the algebra of spreading it over units.

Which units compute the partial results is no matter of this rewrite.  Where the edge between the two reductions is
connected at a core's level, threads of one core combine what each of them reduced; where it is not, tasks do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    expr = node.expr
    assert isinstance(expr.body, Reduce)
    value, ttype = _accumulated(expr, graph)
    axes = _axes(expr, split)
    if axes is None or (axes.guards and _neutral(expr.body.op, ttype) is None):
        return None
    name = fresh(f"{node.name}_partial", graph.names)
    partial = _in_storage_order(_partial(name, expr, value, axes, ttype), constants)
    reduce = tuple(i for i in partial.spatial if i in axes.parts)
    final = replace(
        expr,
        reduce=reduce,
        extents=tuple(axes.domain[i] for i in (*expr.spatial, *reduce)),
        body=Reduce(expr.body.op, reduce, Access(name, tuple(map(Var, partial.spatial)))),
    )
    tensor = Tensor(partial.shape, ttype)
    return PartialReduction(replace(node, expr=partial), replace(node, expr=simplify_tensor(final)), tensor)


def _accumulated(expr: TensorExpr, graph: Graph) -> tuple[Expr, str]:
    """The body of a reduction in the type in which it is accumulated, and that type: half precision is summed in
    single."""
    kind = type_of(expr.value, graph.ttypes)
    ttype = graph.tensors[expr.tensor].ttype if is_weak(kind) else kind
    if ttype in HALVES and expr.reducer in ("sum", "prod"):
        return Call(PROMOTED_TTYPE, (expr.value,)), PROMOTED_TTYPE
    return expr.value, ttype


@dataclass(frozen=True, slots=True)
class _Axes:
    """Iterators of a reduction after a split.

    parts   new spatial iterators: which partial result
    reduce  what every partial result reduces over
    values  old iterator -> its value
    guards  conditions under which there is an element
    domain  extents of all
    """

    parts: tuple[str, ...]
    reduce: tuple[str, ...]
    values: Mapping[str, Expr]
    guards: tuple[Expr, ...]
    domain: Mapping[str, Expr]


def _axes(expr: TensorExpr, split: ReductionSplit) -> _Axes | None:
    """The iterators after a split; None where an extent is no constant, or nothing is left to reduce."""
    domain, taken = expr.domain, set(iterator_names(expr))
    at = {axis.position: axis for axis in split}
    parts: list[str] = []
    reduce: list[str] = []
    values: dict[str, Expr] = {}
    guards: list[Expr] = []
    for position, iterator in enumerate(expr.reduce):
        axis = at.get(position)
        if axis is None or not axis.parts:
            (reduce if axis is None else parts).append(iterator)
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
    return _Axes(tuple(parts), tuple(reduce), values, tuple(guards), domain)


def _partial(name: str, expr: TensorExpr, value: Expr, axes: _Axes, ttype: str) -> TensorExpr:
    """The reduction of every part."""
    assert isinstance(expr.body, Reduce)
    body, neutral = substitute(value, axes.values), _neutral(expr.body.op, ttype)
    if axes.guards and neutral is not None:
        body = Call("where", (_all(axes.guards), body, neutral))
    spatial = (*axes.parts, *expr.spatial)
    extents = tuple(axes.domain[i] for i in (*spatial, *axes.reduce))
    return simplify_tensor(TensorExpr(name, spatial, axes.reduce, extents, Reduce(expr.body.op, axes.reduce, body)))


def _all(guards: Sequence[Expr]) -> Expr:
    """All of some conditions."""
    first, *others = guards
    return Binary("and", first, _all(others)) if others else first


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
