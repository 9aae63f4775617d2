"""Operands of ATen operators while a graph is translated: tensors, symbolic sizes, and their ONNX types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

ONNX_TYPES: dict[torch.dtype, int] = {
    torch.float32: 1,
    torch.uint8: 2,
    torch.int8: 3,
    torch.uint16: 4,
    torch.int16: 5,
    torch.int32: 6,
    torch.int64: 7,
    torch.bool: 9,
    torch.float16: 10,
    torch.float64: 11,
    torch.uint32: 12,
    torch.uint64: 13,
    torch.bfloat16: 16,
}
"""PyTorch's type of elements -> ONNX's."""

Extent = Any
"""An integer, or a symbolic one (`torch.SymInt`)."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of the graph: the ONNX value that carries it, its shape (symbols allowed) and type of elements."""

    name: str
    shape: tuple[Extent, ...]
    dtype: torch.dtype

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


@dataclass(frozen=True, slots=True)
class Size:
    """A symbolic number: the ONNX value, a scalar, that carries it. Integers are int64, quotients float64."""

    name: str
    dtype: torch.dtype = torch.int64


Scalar = bool | int | float
Number = Scalar | Size
