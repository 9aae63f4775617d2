"""Operators of `ai.onnx.ml`, by which classical models are written, that are plain indexing."""

from __future__ import annotations

from tilec.importer.operator import Op
from tilec.importer.ops.gather import looked_up, require_range
from tilec.importer.registry import ML, operator
from tilec.importer.shapes import reshape_index
from tilec.importer.value import Value, extents
from tilec.ir.expr import Binary, Const, Expr


@operator("ArrayFeatureExtractor", domain=ML)
def _array_feature_extractor(op: Op) -> Value:
    """`Y[before, k] = X[before, indices[k]]`; what is before the last dimension of a vector is 1."""
    x, indices = op.value(0), op.value(1)
    require_range(op, indices, x.shape[-1], wraps=False)
    count: Expr = Const(1)
    for extent in indices.shape:
        count = Binary("*", count, extent)
    axes = op.axes_of(extents([*(x.shape[:-1] or (Const(1),)), count]))
    *before, last = (axis.var for axis in axes)
    chosen = indices.at(reshape_index(indices.shape, [axes[-1].extent], [last]))
    at = looked_up(op, chosen, indices.ttype, x.shape[-1])
    return op.emit(axes, x.at([*(before if x.rank > 1 else ()), at]), x.ttype)
