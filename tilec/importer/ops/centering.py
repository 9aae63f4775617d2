"""Subtraction of a mean without loss of precision when it is large relative to the spread."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.operator import Op
from tilec.importer.value import Value


def less_mean(op: Op, x: Value, mean: Value, axes: Sequence[int], part: str = "") -> Value:
    """`x - mean` minus its own mean, for a mean that was summed in the type of `x`.

    The sum of many values around 1000 is off by some units in its last place, which is visible at a spread of 0.1. The
    differences are small and exact, so their mean is the error of the first mean (the corrected two-pass algorithm of
    Chan, Golub and LeVeque, 1983).
    """
    prefix = f"{part}_" if part else ""
    offset = op.map("x - m", x=x, m=mean, part=f"{prefix}offset")
    rest = op.mean(axes, offset, part=f"{prefix}rest")
    return op.map("x - m", x=offset, m=rest, part=part)
