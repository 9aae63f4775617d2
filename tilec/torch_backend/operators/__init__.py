"""Translations of core ATen operators, a module a family; importing this package registers them all."""

from tilec.torch_backend.operators import (
    attention,
    contraction,
    convolution,
    creation,
    elementwise,
    grouped,
    indexing,
    memory,
    movement,
    normalization,
    quantized,
    recurrent,
    reduction,
    resampling,
    sizes,
    spectra,
)

__all__ = [
    "attention",
    "contraction",
    "convolution",
    "creation",
    "elementwise",
    "grouped",
    "indexing",
    "memory",
    "movement",
    "normalization",
    "quantized",
    "recurrent",
    "reduction",
    "resampling",
    "sizes",
    "spectra",
]
