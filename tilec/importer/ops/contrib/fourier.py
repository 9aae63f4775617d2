"""Rfft: the Fourier transform of real numbers, as ONNX's DFT."""

from __future__ import annotations

from tilec.importer.compose import applied
from tilec.importer.operator import Op
from tilec.importer.ops.movement import reshaped
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.value import Value
from tilec.ir.expr import Const


@operator("Rfft", domain=CONTRIB)
def _rfft(op: Op) -> Value:
    """`[..., n]` as `[..., n // 2 + 1, 2]`: real and imaginary part of the first half of the frequencies."""
    x = op.value(0)
    for name, only in (("signal_ndim", 1), ("normalized", 0), ("onesided", 1)):
        if op.integer(name, only) != only:
            raise op.unsupported(f"the attribute {name!r} is {op.integer(name)}")
    pairs = reshaped(op, x, [*x.shape, Const(1)], part="pairs")
    return applied(op, "DFT", pairs, opset=19, axis=x.rank - 1, onesided=1)
