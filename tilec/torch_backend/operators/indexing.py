"""Reads and writes at places that are data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import fx

from tilec.torch_backend.operators.movement import axis
from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import ONNX_TYPES, Tensor

aten = torch.ops.aten


@translates(aten.embedding.default)
def _embedding(t: Translation, node: fx.Node, table: Tensor, indices: Tensor, *_: object) -> str:
    return t.emit("Gather", table.name, indices.name, axis=0)


@translates(aten.index_select.default)
def _index_select(t: Translation, node: fx.Node, x: Tensor, dim: int, indices: Tensor) -> str:
    return t.emit("Gather", x.name, indices.name, axis=axis(x, dim))


@translates(aten.gather.default)
def _gather(t: Translation, node: fx.Node, x: Tensor, dim: int, indices: Tensor, sparse_grad: bool = False) -> str:
    return t.emit("GatherElements", x.name, indices.name, axis=axis(x, dim))


def _placed(t: Translation, x: Tensor, indices: Sequence[Tensor | None]) -> tuple[list[int], str, int]:
    """Dimensions that are indexed, and the indices, broadcast, side by side in a last dimension; their rank."""
    dims = [d for d, index in enumerate(indices) if index is not None]
    given = [index for index in indices if index is not None]
    if any(index.dtype == torch.bool for index in given):
        raise UntranslatableError("an index of truth values, whose number depends on data")
    rank = max(index.rank for index in given)
    names = [t.cast(index, torch.int64) for index in given]
    if len(names) > 1:
        total = names[0]  # the sum has the shape of all
        for name in names[1:]:
            total = t.emit("Add", total, name)
        full = t.emit("Shape", total)
        names = [t.emit("Expand", name, full) for name in names]
    wrapped = []
    for d, name in zip(dims, names, strict=True):
        size = t.operand(t.extent(x, d), torch.int64)
        negative = t.emit("Less", name, t.onnx.constant(0, "int64"))
        wrapped.append(t.emit("Where", negative, t.emit("Add", name, size), name))
    last = t.onnx.integers([-1])
    rows = [t.emit("Unsqueeze", name, last) for name in wrapped]
    return dims, rows[0] if len(rows) == 1 else t.emit("Concat", *rows, axis=-1), rank


@translates(aten.index.Tensor)
def _index(t: Translation, node: fx.Node, x: Tensor, indices: Sequence[Tensor | None]) -> str:
    """Indexed dimensions come first for GatherND; where they are neighbours those of the indices take their place."""
    used = [d for d, index in enumerate(indices) if index is not None]
    single = indices[used[0]] if len(used) == 1 else None
    if single is not None and single.dtype != torch.bool:
        return t.emit("Gather", x.name, t.cast(single, torch.int64), axis=used[0])
    dims, places, rank = _placed(t, x, indices)
    rest = [d for d in range(x.rank) if d not in dims]
    name = x.name if dims == list(range(len(dims))) else t.emit("Transpose", x.name, perm=[*dims, *rest])
    made = t.emit("GatherND", name, places)
    together = dims == list(range(dims[0], dims[0] + len(dims)))
    if not together or dims[0] == 0:
        return made
    before = [rank + n for n, d in enumerate(rest) if d < dims[0]]
    after = [rank + n for n, d in enumerate(rest) if d > dims[0]]
    return t.emit("Transpose", made, perm=[*before, *range(rank), *after])


@translates(aten.index_put.default)
def _index_put(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
) -> str:
    """A mask chooses between values and elements; one vector of places writes along its dimension; other places stand
    for the first dimensions, so that those which are indexed are brought there."""
    given = [(d, index) for d, index in enumerate(indices) if index is not None]
    if len(given) == 1 and given[0][1].dtype == torch.bool:
        return _masked_put(t, x, *given[0], values, accumulate)
    if len(given) == 1 and given[0][1].rank == 1:
        return _put_along(t, x, *given[0], values, accumulate)
    dims, places, rank = _placed(t, x, indices)
    rest = [d for d in range(x.rank) if d not in dims]
    order = [*dims, *rest]
    moved = x.name if order == list(range(x.rank)) else t.emit("Transpose", x.name, perm=order)
    tail = t.emit("Slice", t.emit("Shape", moved), t.onnx.integers([len(dims)]), t.onnx.integers([x.rank]))
    head = t.emit("Slice", t.emit("Shape", places), t.onnx.integers([0]), t.onnx.integers([rank]))
    new = t.cast(values, x.dtype)
    before = [d for d in rest if d < dims[0]]
    if before and dims == list(range(dims[0], dims[0] + len(dims))):
        new = _first_places(t, new, values.rank, len(before), rank, len(rest))
    full = t.emit("Expand", new, t.emit("Concat", head, tail, axis=0))
    made = _written(t, "ScatterND", x.dtype, moved, places, full, "add" if accumulate else None)
    if order == list(range(x.rank)):
        return made
    return t.emit("Transpose", made, perm=[order.index(d) for d in range(x.rank)])


def _first_places(t: Translation, values: str, rank: int, before: int, places: int, rest: int) -> str:
    """Values of shape (dimensions before the indexed ones, those of the places, the others) with the places first."""
    full = rest + places
    if rank < full:
        values = t.emit("Unsqueeze", values, t.onnx.integers(list(range(full - rank))))
    order = [*range(before, before + places), *range(before), *range(before + places, full)]
    return t.emit("Transpose", values, perm=order)


def _masked_put(t: Translation, x: Tensor, dim: int, mask: Tensor, values: Tensor, accumulate: bool) -> str:
    """Values that are one for all places, or one for each place behind the mask."""
    if accumulate or values.rank > x.rank - dim - mask.rank:
        raise UntranslatableError("it writes values where a mask holds, one for each")
    name = mask.name
    if x.rank > dim + mask.rank:
        name = t.emit("Unsqueeze", name, t.onnx.integers(list(range(mask.rank, x.rank - dim))))
    return t.emit("Where", name, t.cast(values, x.dtype), x.name)


def _put_along(t: Translation, x: Tensor, dim: int, index: Tensor, values: Tensor, accumulate: bool) -> str:
    """Values written at a vector of places along one dimension: the others are not moved."""
    extents = t.extents(x)
    extents[dim] = t.extent(index, 0)
    full = t.shape(extents)
    place = t.cast(index, torch.int64)
    if dim < x.rank - 1:
        place = t.emit("Unsqueeze", place, t.onnx.integers(list(range(1, x.rank - dim))))
    new = t.emit("Expand", t.cast(values, x.dtype), full)
    where = t.emit("Expand", place, full)
    reduction = "add" if accumulate else None
    return _written(t, "ScatterElements", x.dtype, x.name, where, new, reduction, axis=dim)


@translates(aten.scatter.src, aten.scatter.value)
def _scatter(t: Translation, node: fx.Node, x: Tensor, dim: int, indices: Tensor, source: Tensor | float) -> str:
    if isinstance(source, Tensor):
        return _scattered(t, x, dim, indices, t.cast(source, x.dtype), source)
    values = t.emit("Expand", t.literal(source, x.dtype), t.emit("Shape", indices.name))
    return _scattered(t, x, dim, indices, values, indices)


@translates(aten.scatter_add.default)
def _scatter_add(t: Translation, node: fx.Node, x: Tensor, dim: int, indices: Tensor, source: Tensor) -> str:
    return _scattered(t, x, dim, indices, source.name, source, "add")


REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
"""Reductions of `scatter_reduce`, as ONNX calls them."""


@translates(aten.scatter_reduce.two)
def _scatter_reduce(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    dim: int,
    indices: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> str:
    """Without the tensor's own elements those that are written start from what changes nothing."""
    if reduce == "mean":
        return _scattered_mean(t, x, dim, indices, source, include_self)
    if not include_self:
        neutral = t.literal(_neutral(reduce, x.dtype), x.dtype)
        values = t.emit("Expand", neutral, t.emit("Shape", indices.name))
        x = replace(x, name=_scattered(t, x, dim, indices, values, indices))
    return _scattered(t, x, dim, indices, source.name, source, REDUCTIONS[reduce])


def _scattered_mean(t: Translation, x: Tensor, dim: int, indices: Tensor, source: Tensor, include_self: bool) -> str:
    """Sums over counts, which integers round down; an element that nothing is written to stays."""
    places = t.emit("Shape", indices.name)
    ones = t.emit("Expand", t.literal(1, x.dtype), places)
    before = t.emit("Expand", t.literal(int(include_self), x.dtype), t.emit("Shape", x.name))
    count = _scattered(t, replace(x, name=before), dim, indices, ones, indices, "add")
    count = t.emit("Max", count, t.literal(1, x.dtype))
    if not include_self:
        zeros = t.emit("Expand", t.literal(0, x.dtype), places)
        x = replace(x, name=_scattered(t, x, dim, indices, zeros, indices))
    total = _scattered(t, x, dim, indices, source.name, source, "add")
    if not x.dtype.is_floating_point:
        total = t.emit("Sub", total, t.emit("Mod", total, count))
    return t.emit("Div", total, count)


def _neutral(reduce: str, dtype: torch.dtype) -> int | float:
    """What a reduction with another number leaves as it is."""
    if reduce in ("sum", "prod"):
        return int(reduce == "prod")
    sign = 1 if reduce == "amin" else -1
    if dtype.is_floating_point:
        return sign * math.inf
    limits = torch.iinfo(dtype)
    return int(limits.max if reduce == "amin" else limits.min)


def _scattered(
    t: Translation,
    x: Tensor,
    dim: int,
    indices: Tensor,
    values: str,
    source: Tensor,
    reduction: str | None = None,
) -> str:
    """A scatter of the part of a source that has the shape of the indices."""
    if not x.rank:
        raise UntranslatableError("a scatter into a scalar")
    if tuple(map(str, source.shape)) != tuple(map(str, indices.shape)):
        ends = t.shape(t.extents(indices))
        values = t.emit("Slice", values, t.onnx.integers([0] * source.rank), ends)
    return _written(t, "ScatterElements", x.dtype, x.name, indices.name, values, reduction, axis=axis(x, dim))


def _written(
    t: Translation,
    op: str,
    dtype: torch.dtype,
    target: str,
    places: str,
    values: str,
    reduction: str | None,
    **attributes: int,
) -> str:
    """A tensor with values written at places. What is reduced in 16 bits is reduced in float32 and rounded once: not
    every runtime has it otherwise."""
    if reduction is None or dtype not in (torch.float16, torch.bfloat16):
        return t.emit(op, target, places, values, reduction=reduction, **attributes)
    wide = ONNX_TYPES[torch.float32]
    target, values = t.emit("Cast", target, to=wide), t.emit("Cast", values, to=wide)
    return t.emit("Cast", t.emit(op, target, places, values, reduction=reduction, **attributes), to=ONNX_TYPES[dtype])


@translates(aten.bucketize.Tensor, aten.searchsorted.Tensor)
def _searched(
    t: Translation,
    node: fx.Node,
    first: Tensor,
    second: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> str:
    """The number of limits, which ascend, that are below a value, or not above it."""
    values, limits = (first, second) if node.target is aten.bucketize.Tensor else (second, first)
    count = limits.shape[-1]
    if sorter is not None or not isinstance(count, int) or count > MOST_LIMITS:
        raise UntranslatableError("a search among many limits, an open number of them, or unsorted ones")
    dtype = torch.promote_types(values.dtype, limits.dtype)
    last = t.onnx.integers([-1])
    value = t.emit("Unsqueeze", t.cast(values, dtype), last)
    limit = t.cast(limits, dtype)
    if limits.rank > 1:
        limit = t.emit("Unsqueeze", limit, t.onnx.integers([limits.rank - 1]))
    right = right or side == "right"
    over = t.emit("Greater", limit, value) if right else t.emit("GreaterOrEqual", limit, value)
    kind = torch.int32 if out_int32 else torch.int64
    below = t.emit("Cast", t.emit("Not", over), to=ONNX_TYPES[kind])  # NaN is above all
    return t.emit("ReduceSum", below, last, keepdims=0)


MOST_LIMITS = 1024
"""Limits up to which a search compares with them all."""
