"""Operators of onnxruntime's own domain, `com.microsoft`: those that its quantiser and its optimiser write.

They are composed of ONNX's operators wherever one exists; onnxruntime's ContribOperators.md is their definition.
"""

from tilec.importer.ops.contrib import (
    activation,
    attention,
    block_gather,
    block_quantized,
    fourier,
    fused,
    group_query_attention,
    moe,
    normalization,
    quantized_attention,
    quantized_elementwise,
    quantized_products,
    quantized_recurrent,
    rotary,
)

__all__ = [
    "activation",
    "attention",
    "block_gather",
    "block_quantized",
    "fourier",
    "fused",
    "group_query_attention",
    "moe",
    "normalization",
    "quantized_attention",
    "quantized_elementwise",
    "quantized_products",
    "quantized_recurrent",
    "rotary",
]
