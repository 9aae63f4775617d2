"""Models with weights of few bits, by torchao and by pt2e."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    quantize_,
)
from torchao.quantization.granularity import PerGroup
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

from tests.torch_models.case import Call, Case, by_position


class Mlp(nn.Module):
    """A gated block, twice."""

    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.ModuleList(nn.Linear(64, 256) for _ in range(2))
        self.ups = nn.ModuleList(nn.Linear(64, 256) for _ in range(2))
        self.downs = nn.ModuleList(nn.Linear(256, 64, bias=False) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for gate, up, down in zip(self.gates, self.ups, self.downs, strict=True):
            x = x + down(nn.functional.silu(gate(x)) * up(x))
        return x


class Convolutions(nn.Module):
    """A full convolution, a depthwise one, a class."""

    def __init__(self) -> None:
        super().__init__()
        self.full, self.depthwise = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.head = nn.Linear(16, 10)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.depthwise(self.full(image).relu()).relu().mean((2, 3)))


def _weights(config: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        model = Mlp().eval()
        quantize_(model, config)
        return model

    return build


def _static() -> nn.Module:
    image = torch.randn(2, 3, 16, 16)
    sizes = ({0: torch.export.Dim("batch")},)
    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(
        torch.export.export(Convolutions().eval(), (image,), dynamic_shapes=sizes).module(), quantizer
    )
    prepared(image)
    converted: nn.Module = convert_pt2e(prepared)
    converted.eval = converted.train = lambda *_: converted  # type: ignore[method-assign]
    return converted


def _rows(_model: nn.Module) -> list[Call]:
    return [by_position(torch.randn(n, 64)) for n in (4, 7, 4)]


CASES = (
    Case("int8-weights", "torchao", _weights(Int8WeightOnlyConfig()), _rows),
    Case("int4-weights", "torchao", _weights(IntxWeightOnlyConfig(torch.int4, PerGroup(32))), _rows),
    Case("int8-dynamic", "torchao", _weights(Int8DynamicActivationInt8WeightConfig()), _rows),
    Case(
        "pt2e-static",
        "torchao",
        _static,
        lambda _model: [by_position(torch.randn(n, 3, 16, 16)) for n in (2, 3, 2)],
    ),
)
