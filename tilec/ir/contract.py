"""Tensor contractions over NumPy axes as matrix products, without an array over all iterators."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tilec.ir.numpy_scalars import Array


def _merge_smallest(values: list[Array], shape: Sequence[int]) -> list[Array]:
    """Multiply the two factors whose product is smallest and put it first."""

    def size(i: int, j: int) -> int:
        return prod(n for n, a, b in zip(shape, values[i].shape, values[j].shape, strict=True) if a != 1 or b != 1)

    i, j = min(((i, j) for j in range(len(values)) for i in range(j)), key=lambda pair: size(*pair))
    merged = values[i] * values[j]
    return [merged, *(v for k, v in enumerate(values) if k not in (i, j))]


def _matrix(array: Array, batch: list[int], rows: list[int], columns: list[int]) -> Array:
    """`array` reshaped to [*batch, rows, columns]; its other axes have extent 1."""
    others = [axis for axis in range(array.ndim) if axis not in (*batch, *rows, *columns)]
    sizes = [prod(array.shape[axis] for axis in axes) for axes in (rows, columns)]
    return array.transpose([*batch, *rows, *columns, *others]).reshape([*(array.shape[a] for a in batch), *sizes])


def _spread(one: Array, other: Array, reduce: Sequence[int]) -> Array:
    """`one` repeated along the `reduce` axes of `other` alone if it has infinities or NaN: then its product with the
    sum of `other` is not the sum of the products."""
    axes = [a for a in reduce if one.shape[a] == 1 != other.shape[a]]
    if not axes or one.dtype.kind != "f" or np.isfinite(one).all():
        return one
    return np.broadcast_to(one, [other.shape[a] if a in axes else n for a, n in enumerate(one.shape)])


def _exact(left: Array, right: Array) -> np.dtype[Any]:
    """The type in which the matrix product of two integer arrays is exact: a floating-point one, whose products are
    many times as fast, where it holds every sum."""
    most = [max(abs(int(each.min(initial=0))), int(each.max(initial=0))) for each in (left, right)]
    largest = most[0] * most[1] * left.shape[-1]
    for dtype, digits in ((np.float32, 24), (np.float64, 53)):
        if largest < 1 << digits:
            return np.dtype(dtype)
    return left.dtype


def _product(left: Array, right: Array) -> Array:
    """The matrix product."""
    if left.dtype.kind not in "iu" or left.dtype != right.dtype:
        return np.asarray(np.matmul(left, right))
    dtype = _exact(left, right)
    product = np.matmul(left.astype(dtype, copy=False), right.astype(dtype, copy=False))
    return np.asarray(product if dtype == left.dtype else product.astype(np.int64).astype(left.dtype))


def contract(values: Sequence[Array], shape: Sequence[int], spatial: int) -> Array:
    """The product of two or more `values` summed over the axes from `spatial` on: an array of the first `spatial` axes.

    `shape` gives the extent of every axis; a value has extent 1 along axes that it does not depend on.
    """
    rest = list(values)
    while len(rest) > 2:
        rest = _merge_smallest(rest, shape)
    left, right = rest
    reduce = range(spatial, len(shape))
    repeats = prod(shape[axis] for axis in reduce if left.shape[axis] == 1 == right.shape[axis])
    left, right = _spread(left, right, reduce), _spread(right, left, reduce)
    # An axis of one factor only is summed before the product.
    left = left.sum(tuple(a for a in reduce if right.shape[a] == 1), dtype=left.dtype, keepdims=True)
    right = right.sum(tuple(a for a in reduce if left.shape[a] == 1), dtype=right.dtype, keepdims=True)
    batch = [a for a in range(spatial) if left.shape[a] != 1 and right.shape[a] != 1]
    rows = [a for a in range(spatial) if left.shape[a] != 1 and a not in batch]
    columns = [a for a in range(spatial) if right.shape[a] != 1 and a not in batch]
    inner = [a for a in reduce if left.shape[a] != 1]
    product = _product(_matrix(left, batch, rows, inner), _matrix(right, batch, inner, columns))
    axes = [*batch, *rows, *columns]
    ordered = product.reshape([shape[a] for a in axes]).transpose(sorted(range(len(axes)), key=axes.__getitem__))
    whole = ordered.reshape([shape[a] if a in axes else 1 for a in range(spatial)])
    return np.broadcast_to(whole * whole.dtype.type(repeats), tuple(shape[:spatial]))
