"""Ranges of index tensors: which values the model's inputs may have where nodes use them as indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tilec.importer.shapes import reshape_index, size_of
from tilec.ir.algebra import equal, simplify
from tilec.ir.bind import simplify_tensor
from tilec.ir.expr import Access, Binary, Call, Const, Expr, TensorExpr, Var, constant_value, substitute, variables
from tilec.ir.graph import IndexRange, Node

CASTS = frozenset({"i64", "i32"})
"""Casts that leave an index what it is."""

Shapes = Mapping[str, tuple[Expr, ...]]


def input_ranges(ranges: Iterable[IndexRange], nodes: Mapping[str, Node], shapes: Shapes) -> tuple[IndexRange, ...]:
    """The ranges of tensors that no node defines, each once: those given, followed through the nodes that only cast and
    move all elements of a tensor, or of a column, or count on from them. `shapes` has the shape of every tensor."""
    result: dict[tuple[object, ...], IndexRange] = {}
    for each in ranges:
        source: IndexRange | None = each
        while source is not None and source.tensor in nodes:
            source = _copied(source, nodes[source.tensor].expr, shapes)
        if source is not None:
            key = (source.tensor, source.extent, source.column, source.besides)
            known = result.setdefault(key, source)
            if known.wraps and not source.wraps:
                result[key] = source
    return tuple(result.values())


def _copied(wanted: IndexRange, expr: TensorExpr, shapes: Shapes) -> IndexRange | None:
    """The same range of the tensor of which a column of an expression (or all of it) has all elements, or those of a
    column, and no other values; None where that is not known."""
    places = {name: 0 for name, extent in expr.domain.items() if extent == Const(1)}
    if wanted.column is not None:
        dimension, at = wanted.column
        places[expr.spatial[dimension]] = at
    expr = _at(expr, places)
    body, counted = _from_first(expr)
    wanted = replace(wanted, extent=simplify(Binary("-", wanted.extent, counted)))
    if isinstance(body, Call) and body.fn in CASTS and len(body.args) == 1:
        body = body.args[0]
    if not isinstance(body, Access):
        return None
    shape = shapes[body.tensor]
    fixed = [
        (d, place)
        for d, (index, extent) in enumerate(zip(body.index, shape, strict=True))
        if (place := constant_value(index)) is not None and extent != Const(1)
    ]
    if len(fixed) > 1 or not (_permutes(expr, body, shape) or (not fixed and _reshapes(expr, body, shape))):
        return None
    return replace(wanted, tensor=body.tensor, column=fixed[0] if fixed else None)


def _from_first(expr: TensorExpr) -> tuple[Expr, Expr]:
    """The first of indices that follow each other, and the number of those behind it: an index that counts on from
    another, as places of new rows in a cache do, is in range where the last one is. From the end they count as far back
    only as all of them do."""
    match expr.body:
        case Binary("+", Var(name), first) | Binary("+", first, Var(name)) if name in expr.spatial:
            if name not in variables(first):
                return first, Binary("-", expr.domain[name], Const(1))
    return expr.body, Const(0)


def _at(expr: TensorExpr, places: Mapping[str, int]) -> TensorExpr:
    """An expression at these places of iterators."""
    kept = {name: extent for name, extent in expr.domain.items() if name not in places}
    spatial, reduce = (tuple(n for n in names if n in kept) for names in (expr.spatial, expr.reduce))
    body = substitute(expr.body, {name: Const(at) for name, at in places.items()})
    return simplify_tensor(TensorExpr(expr.tensor, spatial, reduce, tuple(kept.values()), body))


def _permutes(expr: TensorExpr, body: Access, shape: tuple[Expr, ...]) -> bool:
    """Whether every index of an access is an iterator over the whole dimension, or a place."""
    iterators = [i.name for i in body.index if isinstance(i, Var)]
    whole = all(
        equal(expr.domain[i.name], extent) if isinstance(i, Var) else constant_value(i) is not None
        for i, extent in zip(body.index, shape, strict=True)
    )
    return whole and len(set(iterators)) == len(iterators)


def _reshapes(expr: TensorExpr, body: Access, shape: tuple[Expr, ...]) -> bool:
    """Whether an access reads the elements of a tensor in their order, in another shape."""
    if not equal(size_of(shape), size_of(expr.shape)):
        return False
    index = reshape_index(shape, expr.shape, [Var(name) for name in expr.spatial])
    return all(equal(simplify(a), b) for a, b in zip(index, body.index, strict=True))
