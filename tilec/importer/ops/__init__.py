"""The operators, one family a file; importing this package registers them all."""

from tilec.importer.ops import (
    activation,
    attention,
    constant,
    contraction,
    convolution,
    elementwise,
    gather,
    movement,
    normalization,
    padding,
    pooling,
    quantized,
    reduction,
    resize,
    scatter,
    slicing,
    softmax,
)
from tilec.importer.registry import handler_of, known_operators

__all__ = [
    "activation",
    "attention",
    "constant",
    "contraction",
    "convolution",
    "elementwise",
    "gather",
    "handler_of",
    "known_operators",
    "movement",
    "normalization",
    "padding",
    "pooling",
    "quantized",
    "reduction",
    "resize",
    "scatter",
    "slicing",
    "softmax",
]
