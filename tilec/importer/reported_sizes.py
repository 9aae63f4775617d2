"""Sizes that only a call knows: shapes of results that depend on data, a fresh symbol for each open extent (B01)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilec.importer.formula import formula
from tilec.importer.shapes import size_of
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr

Shape = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Open:
    """An extent that is known when the call has run, at most `limit` (None: unknown). Equal `number`s of one node are
    the same size."""

    limit: Expr | None = None
    number: int = 0


OpenShape = tuple[Expr | Open, ...]

Reads = Sequence[Value | None]


def open_shapes(node: Any, reads: Reads) -> list[OpenShape | None]:
    """The shapes of a node's results, by the operator's definition; None where it is not known here."""
    rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    x = reads[0] if reads else None
    shapes = rule(x, reads, _attributes(node)) if rule is not None and x is not None else []
    return [*shapes, *[None] * len(node.output)][: len(node.output)]


def _attributes(node: Any) -> dict[str, Any]:
    return {each.name: each.i for each in node.attribute}


def _non_zero(x: Value, _reads: Reads, _attributes: Mapping[str, Any]) -> list[OpenShape]:
    return [(Const(max(x.rank, 1)), Open(size_of(x.shape)))]


def _chosen(x: Value, axis: int | None) -> OpenShape:
    """Some of the slices along an axis, or of the elements."""
    if axis is None:
        return (Open(size_of(x.shape)),)
    return tuple(Open(e) if d == axis % x.rank else e for d, e in enumerate(x.shape))


def _compress(x: Value, _reads: Reads, attributes: Mapping[str, Any]) -> list[OpenShape]:
    return [_chosen(x, attributes.get("axis"))]


def _unique(x: Value, _reads: Reads, attributes: Mapping[str, Any]) -> list[OpenShape]:
    axis = attributes.get("axis")
    number = size_of(x.shape) if axis is None else x.shape[axis % x.rank]
    return [_chosen(x, axis), (Open(number),), (number,), (Open(number),)]


def _top_k(x: Value, _reads: Reads, attributes: Mapping[str, Any]) -> list[OpenShape]:
    return [_chosen(x, attributes.get("axis", -1))] * 2


def _boxes(x: Value, reads: Reads, _attributes: Mapping[str, Any]) -> list[OpenShape]:
    """`[selected, 3]`: of every image and class all boxes at most, and not more than the constant that says so."""
    scores, most = (reads[n] if n < len(reads) else None for n in (1, 2))
    if x.rank != 3 or scores is None or scores.rank != 3:
        return [(Open(), Const(3))]
    each = x.shape[1]
    if most is not None and most.literal is not None:
        each = formula("minimum(n, most)", n=each, most=int(most.literal.value))
    limit = simplify(formula("b * c * n", b=x.shape[0], c=scores.shape[1], n=each))
    return [(Open(limit), Const(3))]


def _resize(x: Value, _reads: Reads, _attributes: Mapping[str, Any]) -> list[OpenShape]:
    return [tuple(Open(number=d) for d in range(x.rank))]


_RULES: Mapping[str, Callable[[Value, Reads, Mapping[str, Any]], list[OpenShape]]] = {
    "Compress": _compress,
    "NonMaxSuppression": _boxes,
    "NonZero": _non_zero,
    "Resize": _resize,
    "TopK": _top_k,
    "Unique": _unique,
}
