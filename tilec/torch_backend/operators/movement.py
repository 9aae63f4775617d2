"""Operators that move elements: views, permutations, slices, concatenation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from tilec.torch_backend.flattened_products import unflattened_product
from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import Size, Tensor

aten = torch.ops.aten
END = (1 << 63) - 1
Extents = Sequence[int | Size]


def axis(x: Tensor, dim: int) -> int:
    """A dimension counted from 0."""
    return dim % max(1, x.rank)


@translates(aten.view.default, aten._unsafe_view.default, aten.reshape.default)
def _view(t: Translation, node: fx.Node, x: Tensor, shape: Extents) -> str:
    product = unflattened_product(t, node)
    if product is not None:
        return product
    return t.emit("Reshape", x.name, t.shape(shape), allowzero=1 if -1 not in shape else 0)


@translates(aten.permute.default)
def _permute(t: Translation, node: fx.Node, x: Tensor, dims: Sequence[int]) -> str:
    return t.emit("Transpose", x.name, perm=[axis(x, d) for d in dims]) if x.rank else x.name


@translates(aten.transpose.int)
def _transpose(t: Translation, node: fx.Node, x: Tensor, first: int, second: int) -> str:
    order = list(range(x.rank))
    a, b = axis(x, first), axis(x, second)
    order[a], order[b] = order[b], order[a]
    return t.emit("Transpose", x.name, perm=order) if x.rank else x.name


@translates(aten.t.default)
def _t(t: Translation, node: fx.Node, x: Tensor) -> str:
    return t.emit("Transpose", x.name, perm=list(range(x.rank))[::-1])


@translates(aten.unsqueeze.default)
def _unsqueeze(t: Translation, node: fx.Node, x: Tensor, dim: int) -> str:
    return t.emit("Unsqueeze", x.name, t.onnx.integers([dim % (x.rank + 1)]))


@translates(aten.squeeze.dim, aten.squeeze.dims)
def _squeeze(t: Translation, node: fx.Node, x: Tensor, dims: int | Sequence[int]) -> str:
    chosen = [axis(x, d) for d in ([dims] if isinstance(dims, int) else dims)] if x.rank else []
    ones = [d for d in chosen if isinstance(x.shape[d], int) and x.shape[d] == 1]
    return t.emit("Squeeze", x.name, t.onnx.integers(ones)) if ones else t.emit("Identity", x.name)


@translates(aten.expand.default)
def _expand(t: Translation, node: fx.Node, x: Tensor, shape: Extents, **_: Any) -> str:
    """-1 keeps an extent."""
    new = len(shape) - x.rank
    full = [t.extent(x, d - new) if size == -1 else size for d, size in enumerate(shape)]
    return t.emit("Expand", x.name, t.shape(full))


@translates(aten.repeat.default)
def _repeat(t: Translation, node: fx.Node, x: Tensor, times: Extents) -> str:
    name = x.name
    if len(times) > x.rank:
        name = t.emit("Unsqueeze", name, t.onnx.integers(list(range(len(times) - x.rank))))
    return t.emit("Tile", name, t.shape(times))


@translates(aten.select.int)
def _select(t: Translation, node: fx.Node, x: Tensor, dim: int, index: int | Size) -> str:
    return t.emit("Gather", x.name, t.operand(index, torch.int64), axis=axis(x, dim))


def sliced(t: Translation, x: str, dim: int, first: int | Size, last: int | Size, step: int = 1) -> str:
    """A range of one dimension."""
    ends = [t.integer(each) for each in (first, last)]
    return t.emit("Slice", x, *ends, t.onnx.integers([dim]), t.onnx.integers([step]))


@translates(aten.slice.Tensor)
def _slice(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    dim: int = 0,
    first: int | Size | None = None,
    last: int | Size | None = None,
    step: int = 1,
) -> str:
    return sliced(t, x.name, axis(x, dim), 0 if first is None else first, END if last is None else last, step)


@translates(aten.cat.default)
def _cat(t: Translation, node: fx.Node, parts: Sequence[Tensor], dim: int = 0) -> str:
    """Empty vectors, which PyTorch lets stand beside tensors of any rank, are left out."""
    dtype = node.meta["val"].dtype
    rank = node.meta["val"].dim()
    used = [part for part in parts if part.rank == rank]
    return t.emit("Concat", *(t.cast(part, dtype) for part in used), axis=dim % rank)


@translates(aten.stack.default)
def _stack(t: Translation, node: fx.Node, parts: Sequence[Tensor], dim: int = 0) -> str:
    place = dim % (parts[0].rank + 1)
    rows = [t.emit("Unsqueeze", part.name, t.onnx.integers([place])) for part in parts]
    return t.emit("Concat", *rows, axis=place)


@translates(aten.split_with_sizes.default)
def _split_sizes(t: Translation, node: fx.Node, x: Tensor, sizes: Extents, dim: int = 0) -> list[str]:
    return t.onnx.emit_several("Split", len(sizes), x.name, t.shape(sizes), axis=axis(x, dim))


@translates(aten.split.Tensor)
def _split(t: Translation, node: fx.Node, x: Tensor, size: int, dim: int = 0) -> list[str]:
    place, results = axis(x, dim), node.meta["val"]
    ends = [(n * size, END if n + 1 == len(results) else (n + 1) * size) for n in range(len(results))]
    return [sliced(t, x.name, place, first, last) for first, last in ends]


@translates(aten.unbind.int)
def _unbind(t: Translation, node: fx.Node, x: Tensor, dim: int = 0) -> list[str]:
    place = axis(x, dim)
    return [t.emit("Gather", x.name, t.onnx.constant(n, "int64"), axis=place) for n in range(len(node.meta["val"]))]


@translates(aten.flip.default)
def _flip(t: Translation, node: fx.Node, x: Tensor, dims: Sequence[int]) -> str:
    places = [axis(x, d) for d in dims]
    ends = ([-1] * len(places), [-END] * len(places), places, [-1] * len(places))
    return t.emit("Slice", x.name, *(t.onnx.integers(each) for each in ends))


@translates(aten.constant_pad_nd.default)
def _pad(t: Translation, node: fx.Node, x: Tensor, pads: Extents, value: float = 0) -> str:
    """Pairs from the last dimension on; negative ones cut."""
    before: list[int | Size] = [0] * x.rank
    after: list[int | Size] = [0] * x.rank
    for number in range(len(pads) // 2):
        before[x.rank - 1 - number], after[x.rank - 1 - number] = pads[2 * number], pads[2 * number + 1]
    return t.emit("Pad", x.name, t.shape([*before, *after]), t.literal(value, x.dtype))


@translates(aten.slice_scatter.default)
def _slice_scatter(
    t: Translation,
    node: fx.Node,
    x: Tensor,
    values: Tensor,
    dim: int = 0,
    first: int | Size | None = None,
    last: int | Size | None = None,
    step: int = 1,
) -> str:
    """A tensor with a range of one dimension replaced: its numbers decide where the values go."""
    place = axis(x, dim)
    extent = t.extent(x, place)
    count = t.emit("Range", *(t.operand(each, torch.int64) for each in (0, extent, 1)))
    rows = sliced(t, count, 0, 0 if first is None else first, END if last is None else last, step)
    shape = [1] * x.rank
    shape[place] = -1
    rows = t.emit("Reshape", rows, t.onnx.integers(shape))
    rows = t.emit("Expand", rows, t.emit("Shape", values.name))
    return t.emit("ScatterElements", x.name, rows, t.cast(values, x.dtype), axis=place)


@translates(aten.select_scatter.default)
def _select_scatter(t: Translation, node: fx.Node, x: Tensor, values: Tensor, dim: int, index: int | Size) -> str:
    place = axis(x, dim)
    new = t.emit("Unsqueeze", t.cast(values, x.dtype), t.onnx.integers([place]))
    where = t.emit("Expand", t.operand(index, torch.int64), t.emit("Shape", new))
    return t.emit("ScatterElements", x.name, where, new, axis=place)


@translates(aten.unfold.default)
def _windows(t: Translation, node: fx.Node, x: Tensor, dim: int, size: int, step: int) -> str:
    """Windows of one dimension, whose places are a new last dimension."""
    if not x.rank:
        raise UntranslatableError("the windows of a scalar")
    place = axis(x, dim)
    shape = node.meta["val"].shape
    count = t.operand(_windows_of(t, t.extent(x, place), size, step), torch.int64)
    starts = t.emit("Range", t.onnx.constant(0, "int64"), count, t.onnx.constant(1, "int64"))
    starts = t.emit("Unsqueeze", t.emit("Mul", starts, t.onnx.constant(step, "int64")), t.onnx.integers([1]))
    places = t.emit("Add", starts, t.onnx.constant(list(range(size)), "int64"))
    made = t.emit("Gather", x.name, places, axis=place)
    order = [d for d in range(len(shape)) if d != place + 1]
    return t.emit("Transpose", made, perm=[*order, place + 1])


def _windows_of(t: Translation, extent: int | Size, size: int, step: int) -> int | Size:
    """The number of windows in an extent."""
    if isinstance(extent, int):
        return (extent - size) // step + 1
    more = t.emit("Sub", extent.name, t.onnx.constant(size - step, "int64"))
    return Size(t.emit("Div", more, t.onnx.constant(step, "int64")))


@translates(aten.diagonal.default)
def _diagonal(t: Translation, node: fx.Node, x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> str:
    """Element n of the matrix flattened, from the first in steps of a row and one."""
    rows, columns = axis(x, dim1), axis(x, dim2)
    lead = [d for d in range(x.rank) if d not in (rows, columns)]
    moved = t.emit("Transpose", x.name, perm=[*lead, rows, columns])
    extents = t.extents(x)
    width = t.operand(extents[columns], torch.int64)
    flat = t.emit("Reshape", moved, t.shape([*(extents[d] for d in lead), -1]))
    length = node.meta["val"].shape[-1]
    if not isinstance(length, int):
        raise UntranslatableError("a diagonal of an open length")
    numbers = t.onnx.constant(list(range(length)), "int64")
    step = t.emit("Add", width, t.onnx.constant(1, "int64"))
    first = t.onnx.constant(offset, "int64") if offset >= 0 else t.emit("Mul", width, t.onnx.constant(-offset, "int64"))
    return t.emit("Gather", flat, t.emit("Add", t.emit("Mul", numbers, step), first), axis=len(lead))
