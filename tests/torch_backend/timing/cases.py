"""What is timed: the modules of the tests, and blocks with weights of few bits, which each backend has as it likes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from tests.torch_backend.models import CASES, Case

WIDTH, HIDDEN, GROUP = 512, 2048, 32


class Gated(nn.Module):
    """The feed-forward block of a language model."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(WIDTH, HIDDEN, bias=False), nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


def cases(backend: str) -> Mapping[str, Case]:
    """The cases of a backend, by name."""
    return {**CASES, **{name: _case(name, backend) for name in QUANTISED}}


def _case(name: str, backend: str) -> Case:
    bits, dtype = QUANTISED[name]

    def build() -> nn.Module:
        from torchao.quantization import quantize_

        module = Gated().to(dtype)
        quantize_(module, bits(backend))
        return module

    return Case(build, lambda n: (torch.randn(n, WIDTH).to(dtype),))


def _int8(_backend: str) -> Any:
    from torchao.quantization import Int8WeightOnlyConfig

    return Int8WeightOnlyConfig()


def _int4(backend: str) -> Any:
    """Packed for PyTorch's own kernel, for inductor; the numbers themselves, for tilec."""
    if backend == "tilec":
        from torchao.quantization import IntxWeightOnlyConfig
        from torchao.quantization.granularity import PerGroup

        return IntxWeightOnlyConfig(torch.int4, PerGroup(GROUP))
    from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig

    return PrototypeInt4WeightOnlyConfig(GROUP)


QUANTISED: dict[str, tuple[Callable[[str], Any], torch.dtype]] = {
    f"{name} {dtype}": (config, getattr(torch, dtype))
    for name, config in (("int8", _int8), ("int4", _int4))
    for dtype in ("float32", "bfloat16")
}
"""Weights of these bits, and inputs of this type: how a backend has the weights."""


def in_float64(module: nn.Module) -> nn.Module:
    """The module in float64; weights of few bits are the numbers that their codes stand for."""
    for each in module.modules():
        if isinstance(each, nn.Linear) and type(each.weight.data) is not Tensor:
            with torch.no_grad():
                numbers = each(torch.eye(each.in_features, dtype=each.weight.dtype)).t()
            each.weight = nn.Parameter(numbers.double().contiguous())
    return module.double()
