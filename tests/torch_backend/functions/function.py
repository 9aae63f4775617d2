"""One function of PyTorch, and its inputs for a size.

The size is the extent of one dimension or more; inputs of float32 stand for those of the other types in `types`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

FLOAT = (torch.float32,)
REAL = (torch.float32, torch.float16, torch.bfloat16)
NUMBER = (*REAL, torch.int64)
ANY = (*NUMBER, torch.bool)
WHOLE = (torch.int64, torch.int32, torch.uint8)
BITS = (torch.int64, torch.int32, torch.bool)


@dataclass(frozen=True)
class Function:
    """A function and its inputs at a size; `types` that float32 is replaced by; `fixed`: the size does not vary."""

    call: Callable[..., Any]
    inputs: Callable[[int], tuple[Any, ...]]
    types: tuple[torch.dtype, ...] = FLOAT
    fixed: bool = False


def normal(*shape: int | str) -> Callable[[int], tuple[Tensor, ...]]:
    """One normal tensor; the extent "n" is the size."""
    return lambda n: (_normal(n, shape),)


def _normal(n: int, shape: tuple[int | str, ...]) -> Tensor:
    return torch.randn([n if extent == "n" else int(extent) for extent in shape])


def tensors(*shapes: tuple[int | str, ...]) -> Callable[[int], tuple[Tensor, ...]]:
    """Normal tensors of these shapes."""
    return lambda n: tuple(_normal(n, shape) for shape in shapes)


def within(low: float, high: float, *shape: int | str) -> Callable[[int], tuple[Tensor, ...]]:
    """One tensor of numbers between two bounds."""
    return lambda n: (torch.rand_like(_normal(n, shape)) * (high - low) + low,)


def special(n: int) -> tuple[Tensor, ...]:
    """Infinities, NaN and zeros of both signs beside other numbers."""
    odd = torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0, 1.0, -2.5, 1e-30])
    return (torch.cat([odd, torch.randn(n)]),)


def places(limit: int, *shape: int | str) -> Callable[[int], Tensor]:
    """Indices below a limit."""
    return lambda n: torch.randint(limit, [n if extent == "n" else int(extent) for extent in shape])


MATRIX = normal("n", 6)
ROWS = normal(3, "n", 5)
IMAGES = normal(2, 4, "n", 9)
PAIR = tensors(("n", 6), ("n", 6))
BROAD = tensors(("n", 6), (1, 6))
VECTOR = normal("n")
