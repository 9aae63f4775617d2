"""Operators that name elements by their places in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import fx

from tilec.torch_backend.shared_memory import memory_of
from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import Size, Tensor

aten = torch.ops.aten
Extents = Sequence[int | Size]


@translates(aten.as_strided.default)
def _as_strided(
    t: Translation, node: fx.Node, x: Tensor, shape: Extents, strides: Extents, offset: int | Size | None = None
) -> str:
    """Elements of a tensor without gaps, or of one that this is a view of, by their numbers in memory; of open shapes
    all of them, in another order."""
    source = node.all_input_nodes[0]
    offset = source.meta["val"].storage_offset() if offset is None else offset
    whole = memory_of(source)
    x, value = t.known[whole], whole.meta["val"]
    order = without_gaps(value.shape, value.stride())
    if order is None:
        raise UntranslatableError("memory with gaps")
    turned = t.emit("Transpose", x.name, perm=order) if order != sorted(order) else x.name
    flat = t.emit("Reshape", turned, t.onnx.integers([-1]))
    numbers = [each for each in (*shape, *strides, offset) if isinstance(each, int)]
    if len(numbers) <= 2 * len(shape):
        return _all_in_order(t, node, flat, value, shape)
    first = numbers[-1] - value.storage_offset()
    places = _numbers(numbers[: len(shape)], numbers[len(shape) : 2 * len(shape)], first)
    if places.size and not 0 <= places.min() <= places.max() < value.numel():
        raise UntranslatableError("memory outside of the tensor")
    return t.emit("Gather", flat, t.onnx.constant(places, np.int64), axis=0)


def _numbers(shape: Sequence[int], strides: Sequence[int], offset: int) -> NDArray[np.int64]:
    """Where the elements of a view of memory lie, by number."""
    places = np.full((), offset, np.int64)
    for extent, stride in zip(shape, strides, strict=True):
        places = places[..., None] + np.arange(extent) * stride
    return places


@translates(aten.as_strided_scatter.default)
def _as_strided_scatter(
    t: Translation, node: fx.Node, x: Tensor, source: Tensor, shape: Extents, strides: Extents, offset: Any = None
) -> str:
    """A tensor whose elements at places in its memory are replaced."""
    value = node.args[0].meta["val"]
    extents, steps = ([each for each in sizes if isinstance(each, int)] for sizes in (shape, strides))
    if any(isinstance(each, Size | torch.SymInt) for each in (*value.shape, *shape, *strides, offset)):
        raise UntranslatableError("memory of an open shape")
    if not value.is_contiguous() or value.storage_offset():
        raise UntranslatableError("memory with gaps, in another order, or not from its start")
    return _replaced(t, x, _numbers(extents, steps, offset or 0), source)


@translates(aten.diagonal_scatter.default)
def _diagonal_scatter(
    t: Translation, _node: fx.Node, x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> str:
    """A tensor whose diagonal is replaced."""
    extents = [each for each in x.shape if isinstance(each, int)]
    if len(extents) < len(x.shape):
        raise UntranslatableError("a diagonal of an open shape")
    everywhere = np.arange(math.prod(extents)).reshape(extents)
    return _replaced(t, x, np.diagonal(everywhere, offset, dim1, dim2), source)


def _replaced(t: Translation, x: Tensor, places: NDArray[np.int64], source: Tensor) -> str:
    """A tensor of a known shape with other elements at these places, by number."""
    flat = t.emit("Reshape", x.name, t.onnx.integers([-1]))
    updates = t.emit("Reshape", t.cast(source, x.dtype), t.onnx.integers([-1]))
    made = t.emit("ScatterElements", flat, t.onnx.constant(places.reshape(-1), np.int64), updates, axis=0)
    return t.emit("Reshape", made, t.onnx.integers([int(each) for each in x.shape]))


def _all_in_order(t: Translation, node: fx.Node, flat: str, value: torch.Tensor, shape: Extents) -> str:
    """All elements of memory as a tensor that has each once."""
    made, strides = node.meta["val"], node.meta["val"].stride()
    order = without_gaps(made.shape, strides)
    if order is None or made.storage_offset() or expression(made.numel()) != expression(value.numel()):
        raise UntranslatableError("memory of an open shape that is read in part or again and again")
    whole = t.emit("Reshape", flat, t.shape([shape[d] for d in order]), allowzero=1)
    back = [order.index(d) for d in range(len(order))]
    return t.emit("Transpose", whole, perm=back) if back != sorted(back) else whole


def without_gaps(shape: Sequence[Any], strides: Sequence[Any]) -> list[int] | None:
    """The dimensions from the one with the largest steps in memory on, where memory has each element once and nothing
    else; None where it has not, or where symbols do not tell."""
    order = [d for d, extent in enumerate(shape) if expression(extent) == 1]
    rest = [d for d in range(len(shape)) if d not in order]
    step = expression(1)
    while rest:
        found = [d for d in rest if expression(strides[d]) == step]
        if not found:
            return None
        order.insert(0, found[0])
        rest.remove(found[0])
        step = step * expression(shape[found[0]])
    return order


def expression(extent: int | torch.SymInt) -> Any:
    """An extent by its symbols."""
    return extent if isinstance(extent, int) else extent.node.expr
