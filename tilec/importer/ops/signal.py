"""Windows of signals and the mel scale: tensors computed from a few numbers."""

from __future__ import annotations

from math import pi

import numpy as np

from tilec.importer.element_types import ELEMENT_TYPES
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Call
from tilec.ir.types import numpy_dtype

_HAMMING = float(np.float32(25 / 46))
_BLACKMAN = np.float32(0.16)
COSINES = {
    "HannWindow": (0.5, 0.5, 0.0),
    "HammingWindow": (_HAMMING, 1 - _HAMMING, 0.0),
    "BlackmanWindow": (float((1 - _BLACKMAN) / 2), 0.5, float(_BLACKMAN / 2)),
}
"""Window -> weights of the constant, of the negative cosine and of the cosine of twice the angle, rounded in f32."""

MAX_ELEMENTS = 1 << 24
"""Maximal number of elements of a mel matrix."""


def _type(op: Op) -> str:
    code = op.integer("output_datatype", 1)
    if code not in ELEMENT_TYPES:
        raise op.unsupported(f"element type {code} (attribute 'output_datatype')", "Use a float or integer type.")
    return ELEMENT_TYPES[code]


@operator(*COSINES)
def _window(op: Op) -> Value:
    """`a - b cos(t) + c cos(2t)`, with t over a full circle: in `size` steps if periodic, else in one less."""
    size, ttype = op.single(0), _type(op)
    period = simplify(formula("size" if op.integer("periodic", 1) else "maximum(size - 1, 1)", size=size))
    axes = op.axes_of([size])
    constant, first, second = COSINES[op.kind]
    angle = formula("f64(i) * turn / f64(n)", i=axes[0].var, n=period, turn=2 * pi)
    text = "a - b * cos(t) + c * cos(2.0 * t)" if second else "a - b * cos(t)"
    body = formula(text, a=constant, b=first, c=second, t=angle)
    return op.emit(axes, Call(ttype, (body,)), ttype)


@operator("MelWeightMatrix")
def _mel(op: Op) -> Value:
    """Triangles over the bins of a spectrum, equally wide on the mel scale (O'Shaughnessy 1987)."""
    triangles, length, rate = (int(op.required(i)) for i in range(3))
    low, high = (float(op.required(i)) for i in (3, 4))
    bins = length // 2 + 1
    if triangles < 0 or length < 0 or rate < 1 or bins * triangles > MAX_ELEMENTS:
        raise op.invalid(f"{triangles} mel bins over a transform of length {length} at {rate} Hz")
    edges = 2595 * np.log10(1 + np.array([low, high], np.float64) / 700)
    mel = edges[0] + np.arange(triangles + 2) * (edges[1] - edges[0]) / (triangles + 2)
    points = ((length + 1) * 700 * (10 ** (mel / 2595) - 1) // rate).astype(np.int64)
    if points.min() < 0 or points.max() >= bins:
        raise op.invalid(f"frequencies from {low} to {high} Hz", f"They must lie between 0 and {rate / 2} Hz.")
    start, top, end = (points[k : k + triangles] for k in range(3))
    at = np.arange(bins)[:, None]
    rise = np.where(top > start, (at - start) / np.maximum(top - start, 1), 1.0)
    fall = np.where(end > top, (end - at) / np.maximum(end - top, 1), 0.0)
    rising, falling = (at >= start) & (at <= top), (at >= top) & (at < end)
    matrix = np.where(falling, fall, np.where(rising, rise, 0.0))
    ttype = _type(op)
    return op.constant(matrix.astype(numpy_dtype(ttype)), ttype)
