"""Sizes that only a call knows: shapes of results that depend on data, a fresh symbol for each open extent (B01)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx

from tilec.importer.fold_ratios import Ratios, ratios_in
from tilec.importer.formula import formula
from tilec.importer.ratio import Ratio, floor, product
from tilec.importer.shapes import size_of
from tilec.importer.value import Value
from tilec.ir.algebra import bounds_of, equal, simplify
from tilec.ir.expr import Const, Expr, constant_value

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
    rule = _RULES.get(("" if node.domain == "ai.onnx" else node.domain, node.op_type))
    x = reads[0] if reads else None
    shapes = rule(x, reads, _attributes(node)) if rule is not None and x is not None else []
    return [*shapes, *[None] * len(node.output)][: len(node.output)]


def _attributes(node: Any) -> dict[str, Any]:
    return {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}


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


def _resize(x: Value, reads: Reads, attributes: Mapping[str, Any]) -> list[OpenShape]:
    """Extents whose scale or size is known, and the others."""
    opened: list[Expr | Open] = [Open(number=d) for d in range(x.rank)]
    scales, sizes = (_elements(reads, n) for n in (2, 3))
    if "axes" in attributes or x.rank not in (len(scales), len(sizes)):
        return [tuple(opened)]
    if len(sizes) == x.rank:
        return [tuple(_or_open(size, d) for d, size in enumerate(sizes))]
    for d, (extent, scale) in enumerate(zip(x.shape, scales, strict=True)):
        scaled = None if scale is None else product(Ratio(extent), scale)
        opened[d] = _or_open(None if scaled is None else floor(scaled), d)
    return [tuple(opened)]


def _reshape(x: Value, reads: Reads, attributes: Mapping[str, Any]) -> list[OpenShape]:
    """Extents that are known of the shape that is asked for."""
    opened: list[Expr | Open] = []
    for d, wanted in enumerate(_elements(reads, 1)):
        extent = None if wanted is None else wanted.integer
        copies = extent == Const(0) and not attributes.get("allowzero") and d < x.rank
        opened.append(x.shape[d] if copies else _or_open(None if extent == Const(-1) else wanted, d))
    return [tuple(opened)]


def _expand(x: Value, reads: Reads, _attributes: Mapping[str, Any]) -> list[OpenShape]:
    """Extents of a shape that is known in part, and those of the tensor where it is 1."""
    wanted = _elements(reads, 1)
    rank = max(x.rank, len(wanted))
    sizes = [Ratio(Const(1))] * (rank - len(wanted)) + list(wanted)
    extents = [Const(1)] * (rank - x.rank) + list(x.shape)
    opened: list[Expr | Open] = []
    for d, (extent, size) in enumerate(zip(extents, sizes, strict=True)):
        known = None if size is None else size.integer
        same = known == Const(1) or (known is not None and equal(known, extent))
        opened.append(extent if same else _or_open(size if extent == Const(1) else None, d))
    return [tuple(opened)]


def _constant_of_shape(_x: Value, reads: Reads, _attributes: Mapping[str, Any]) -> list[OpenShape]:
    return [tuple(_or_open(size, d) for d, size in enumerate(_elements(reads, 0)))]


def _tile(x: Value, reads: Reads, _attributes: Mapping[str, Any]) -> list[OpenShape]:
    counts = _elements(reads, 1)
    if len(counts) != x.rank:
        return []
    sizes = [None if n is None else product(Ratio(e), n) for e, n in zip(x.shape, counts, strict=True)]
    return [tuple(_or_open(size, d) for d, size in enumerate(sizes))]


def _elements(reads: Reads, position: int) -> Ratios:
    """What is known of the elements of a small vector; nothing of an absent one."""
    value = reads[position] if position < len(reads) else None
    if value is None or value.rank != 1:
        return ()
    length = constant_value(value.shape[0])
    return ratios_in(value) or (None,) * (length or 0)


def _or_open(size: Ratio | None, number: int) -> Expr | Open:
    """A known size that is no negative number, else one that the call reports."""
    known = None if size is None else size.integer
    low = None if known is None else bounds_of(known)[0]
    return known if known is not None and low is not None and low >= 0 else Open(number=number)


def _rows(x: Value) -> Expr:
    """The samples that an operator of classical learning is given: a vector is one."""
    return x.shape[0] if x.rank > 1 else Const(1)


def _like_input(x: Value, _reads: Reads, _attributes: Mapping[str, Any]) -> list[OpenShape]:
    return [x.shape]


def _targets(x: Value, _reads: Reads, attributes: Mapping[str, Any]) -> list[OpenShape]:
    count = attributes.get("n_targets", attributes.get("targets", 1))
    return [(_rows(x), Const(count))]


def _labels(x: Value, _reads: Reads, attributes: Mapping[str, Any]) -> list[OpenShape]:
    """A label of every sample, and a score for each label that the model names."""
    names = ("classlabels_int64s", "classlabels_ints", "classlabels_strings")
    count = next((len(attributes[name]) for name in names if attributes.get(name)), 0)
    return [(_rows(x),), *([(_rows(x), Const(count))] if count > 1 else [])]


_CLASSICAL: Mapping[str, Callable[[Value, Reads, Mapping[str, Any]], list[OpenShape]]] = {
    "Binarizer": _like_input,
    "Imputer": _like_input,
    "LabelEncoder": _like_input,
    "LinearClassifier": _labels,
    "LinearRegressor": _targets,
    "Normalizer": _like_input,
    "Scaler": _like_input,
    "TreeEnsemble": _targets,
    "TreeEnsembleClassifier": _labels,
    "TreeEnsembleRegressor": _targets,
}

_RULES: Mapping[tuple[str, str], Callable[[Value, Reads, Mapping[str, Any]], list[OpenShape]]] = {
    ("", "Compress"): _compress,
    ("", "ConstantOfShape"): _constant_of_shape,
    ("", "Expand"): _expand,
    ("", "NonMaxSuppression"): _boxes,
    ("", "NonZero"): _non_zero,
    ("", "Reshape"): _reshape,
    ("", "Resize"): _resize,
    ("", "Tile"): _tile,
    ("", "TopK"): _top_k,
    ("", "Unique"): _unique,
    **{("ai.onnx.ml", name): rule for name, rule in _CLASSICAL.items()},
}
