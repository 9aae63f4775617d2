"""What ATen operators decompose into before they are translated."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._decomp import core_aten_decompositions

from tilec.torch_backend.rules import RULES

KEPT = (
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default,
    torch.ops.aten.select_scatter.default,  # it decomposes into a result of another type where a bool is written to
)
"""Operators that are translated whole, for they say more than what they decompose into."""


@functools.cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """Operator -> its rule, without those that are translated whole."""
    table = {**core_aten_decompositions(), **RULES}
    return {target: rule for target, rule in table.items() if target not in KEPT}
