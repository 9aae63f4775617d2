"""Reads and writes at places that are data."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx

from tilec.torch_backend.operators.movement import axis
from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import Tensor

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
    if len(indices) == 1 and indices[0] is not None and indices[0].dtype == torch.bool:
        mask = indices[0]
        if values.rank or accumulate:
            raise UntranslatableError("values written where a mask holds, one for each")
        name = mask.name
        if x.rank > mask.rank:
            name = t.emit("Unsqueeze", name, t.onnx.integers(list(range(mask.rank, x.rank))))
        return t.emit("Where", name, t.cast(values, x.dtype), x.name)
    dims, places, rank = _placed(t, x, indices)
    if dims != list(range(len(dims))):
        raise UntranslatableError("values written to other dimensions than the first ones")
    rest = t.emit("Shape", x.name)
    tail = t.emit("Slice", rest, t.onnx.integers([len(dims)]), t.onnx.integers([x.rank]))
    head = t.emit("Slice", t.emit("Shape", places), t.onnx.integers([0]), t.onnx.integers([rank]))
    full = t.emit("Expand", t.cast(values, x.dtype), t.emit("Concat", head, tail, axis=0))
    return t.emit("ScatterND", x.name, places, full, reduction="add" if accumulate else None)


@translates(aten.scatter.src, aten.scatter.value)
def _scatter(t: Translation, node: fx.Node, x: Tensor, dim: int, indices: Tensor, source: Tensor | float) -> str:
    if isinstance(source, Tensor):
        values = t.cast(source, x.dtype)
        if tuple(map(str, source.shape)) != tuple(map(str, indices.shape)):
            raise UntranslatableError("a scatter that writes a part of its source")
    else:
        values = t.emit("Expand", t.literal(source, x.dtype), t.emit("Shape", indices.name))
    return t.emit("ScatterElements", x.name, indices.name, values, axis=axis(x, dim))


@translates(aten.scatter_add.default)
def _scatter_add(t: Translation, node: fx.Node, x: Tensor, dim: int, indices: Tensor, source: Tensor) -> str:
    return t.emit("ScatterElements", x.name, indices.name, source.name, axis=axis(x, dim), reduction="add")
