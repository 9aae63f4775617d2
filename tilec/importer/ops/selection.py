"""Operators whose output's shape depends on data: compiled where the deciding input is known at import."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tilec.errors import TilecError
from tilec.importer.forms import chosen
from tilec.importer.operator import Op
from tilec.importer.ops.movement import reshaped
from tilec.importer.registry import operator
from tilec.importer.shapes import reshape_index, size_of
from tilec.importer.value import Value
from tilec.ir.expr import Binary, Const, constant_value


def _depends_on_data(op: Op) -> TilecError:
    reason = "its output's shape depends on the data"
    return op.unsupported(reason, "Make the deciding input a constant, or mask elements instead of removing them.")


@operator("NonMaxSuppression")
def _never_known(op: Op) -> Value:
    """Never known: the number of boxes depends on the scores."""
    raise _depends_on_data(op)


@operator("Compress")
def _compress(op: Op) -> Value:
    """The slices along an axis (or elements, without one) for which a known condition holds."""
    x, condition = op.value(0), op.value(1)
    if condition.rank != 1:
        raise op.invalid(f"a condition of rank {condition.rank}", "It must be a vector.")
    if condition.array is None:
        raise _depends_on_data(op)
    if "axis" not in op.attributes:
        x = reshaped(op, x, (size_of(x.shape),), part="flat")
    axis = op.axis(op.integer("axis"), x.rank)
    extent, positions = constant_value(x.shape[axis]), np.flatnonzero(condition.array)
    if extent is not None:
        positions = positions[positions < extent]
    elif len(positions):
        last = int(positions[-1])
        op.sizes.assume(Binary(">=", x.shape[axis], Const(last + 1)), f"the place {last} is chosen")
    places = op.constant(positions, "i64", part="places")
    axes = op.axes_of([*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]])
    return op.emit(axes, x.at([places.at([a.var]) if d == axis else a.var for d, a in enumerate(axes)]), x.ttype)


@operator("NonZero")
def _non_zero(op: Op) -> Value:
    """The coordinates of the elements other than 0 of known contents, row-major, a row for each dimension."""
    x = op.value(0)
    if x.array is not None:
        coordinates = np.stack(np.nonzero(np.atleast_1d(x.array)))
        return op.constant(coordinates, "i64")
    if x.literal is None:
        raise _depends_on_data(op)
    extents = x.shape or (Const(1),)
    if not x.literal.value:
        return op.constant(np.zeros((len(extents), 0)), "i64")
    size = size_of(extents)
    axes = op.axes_of([Const(len(extents)), size])
    return op.emit(axes, chosen(axes[0].var, reshape_index(extents, [size], [axes[1].var], sizes=op.sizes)), "i64")


@operator("Unique")
def _unique(op: Op) -> tuple[Value, ...]:
    """The distinct elements (or slices along an axis) of known contents, the first index of each, the number of every
    element's value among them, and the count of each."""
    x = op.value(0)
    if x.array is None:
        raise _depends_on_data(op)
    axis = op.axis(op.integer("axis"), x.rank) if "axis" in op.attributes else None
    values, first, inverse, counts = np.unique(
        x.array, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    order = np.arange(len(first)) if op.integer("sorted", 1) else np.argsort(first, kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    whole = op.constant(np.take(values, order, axis or 0), x.ttype)
    numbers: tuple[NDArray[np.int64], ...] = (first[order], places[inverse.ravel()], counts[order])
    return whole, *(op.constant(n, "i64", output=i + 1) for i, n in enumerate(numbers) if op.wants(i + 1))
