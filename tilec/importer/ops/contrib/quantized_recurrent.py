"""DynamicQuantizeLSTM: an LSTM whose weights are small integers and whose input and state are quantised every step."""

from __future__ import annotations

from dataclasses import replace

from tilec.importer.operator import Op
from tilec.importer.ops.movement import transposed
from tilec.importer.ops.recurrent import WeightScale, recurrence
from tilec.importer.ops.recurrent_cells import lstm
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.value import Value

EXPRESSIONS = 12
"""Number of tensor expressions of one step."""


@operator("DynamicQuantizeLSTM", domain=CONTRIB)
def _dynamic_quantize_lstm(op: Op) -> tuple[Value | None, ...]:
    """W and R are stored as `[d, i, 4 * h]`, the transpose of ONNX's LSTM."""
    weights = (transposed(op, op.value(i), (0, 2, 1), part=part) for i, part in ((1, "w"), (2, "r")))
    plain = replace(op, inputs=(op.value(0), *weights, *op.inputs[3:8]))
    scales = (WeightScale(op.value(8), op.value(9)), WeightScale(op.value(10), op.value(11)))
    return lstm(replace(recurrence(plain, gates=4, expressions=EXPRESSIONS), scales=scales))
