"""Models of torchvision and timm that see images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import timm
import torch
import torchvision
from torch import nn

from tests.torch_models.case import Call, Case, by_position

_TV = torchvision.models


def _images(side: int, batches: tuple[int, ...] = (2, 3, 2)) -> Callable[[nn.Module], list[Call]]:
    return lambda _model: [by_position(torch.randn(batch, 3, side, side)) for batch in batches]


def _timm(name: str, side: int = 64, known_as: str = "", **more: Any) -> Case:
    def build() -> nn.Module:
        return timm.create_model(name, pretrained=False, num_classes=10, **more)

    return Case(known_as or name.replace("_", "-"), "timm", build, _images(side))


def _torchvision(name: str, build: Callable[[], nn.Module], side: int = 64) -> Case:
    return Case(name, "torchvision", build, _images(side))


class _FirstOf(nn.Module):
    """One result of a model that returns several by name."""

    def __init__(self, model: nn.Module, name: str) -> None:
        super().__init__()
        self.model, self.name = model, name

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.model(image)[self.name]


CASES = (
    _timm("test_byobnet"),
    _timm("test_coatnet", 160),
    _timm("test_maxvit", 160),
    _timm("test_nfnet"),
    _timm("test_mambaout"),
    _timm("test_efficientnet_gn"),
    _timm("test_efficientnet_evos"),
    _timm("test_vit_relpos", 160),
    _timm(
        "swin_tiny_patch4_window7_224",
        56,
        "swin-timm",
        img_size=56,
        embed_dim=16,
        depths=(2, 2),
        num_heads=(2, 4),
    ),
    Case(
        "mixer",
        "timm",
        lambda: timm.models.mlp_mixer.MlpMixer(10, img_size=64, embed_dim=32, num_blocks=2),
        _images(64),
    ),
    _timm("xcit_nano_12_p16_224", known_as="xcit", img_size=64, embed_dim=32, depth=2, num_heads=4),
    _torchvision("densenet", lambda: _TV.DenseNet(8, (2, 2), 16, num_classes=10)),
    _torchvision("googlenet", lambda: _TV.GoogLeNet(10, aux_logits=False, init_weights=False)),
    _torchvision("mnasnet", lambda: _TV.MNASNet(0.35, num_classes=10)),
    _torchvision("squeezenet", lambda: _TV.squeezenet1_1(num_classes=10)),
    _torchvision("regnet", lambda: _TV.regnet_y_400mf(num_classes=10)),
    _torchvision(
        "swin-v2",
        lambda: _TV.SwinTransformer(
            [4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=10,
            block=_TV.swin_transformer.SwinTransformerBlockV2, downsample_layer=_TV.swin_transformer.PatchMergingV2,
        ),
    ),
    _torchvision(
        "deeplab",
        lambda: _FirstOf(
            _TV.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=4), "out"
        ),
    ),
)  # fmt: skip
