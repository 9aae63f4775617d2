"""Blocks of models that draw images: a UNet with time and text, a decoder of latents, a transformer."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.torch_models.case import Case, by_position


def time_embedding(times: Tensor, width: int) -> Tensor:
    """Sines and cosines of times at falling frequencies."""
    frequencies = torch.exp(-math.log(10000) * torch.arange(width // 2, dtype=torch.float32) / (width // 2))
    angles = times[:, None].float() * frequencies[None]
    return torch.cat([angles.cos(), angles.sin()], -1)


class ResnetBlock(nn.Module):
    def __init__(self, inside: int, outside: int, time: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inside), nn.Conv2d(inside, outside, 3, padding=1)
        self.time = nn.Linear(time, outside)
        self.norm2, self.conv2 = nn.GroupNorm(4, outside), nn.Conv2d(outside, outside, 3, padding=1)
        self.skip = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        hidden = self.conv1(functional.silu(self.norm1(x))) + self.time(functional.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(functional.silu(self.norm2(hidden)))


class CrossAttention(nn.Module):
    def __init__(self, width: int, context: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(each, width, bias=False) for each in (width, context, context))
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        def apart(y: Tensor) -> Tensor:
            return y.view(len(y), -1, self.heads, y.shape[-1] // self.heads).transpose(1, 2)

        made = functional.scaled_dot_product_attention(apart(self.q(x)), apart(self.k(context)), apart(self.v(context)))
        return self.out(made.transpose(1, 2).flatten(2))


class SpatialTransformer(nn.Module):
    def __init__(self, width: int, context: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.own, self.cross = CrossAttention(width, width), CrossAttention(width, context)
        self.gate, self.out = nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        batch, width, height, columns = x.shape
        hidden = self.norm(x).flatten(2).transpose(1, 2)
        normed = self.norms[0](hidden)
        hidden = hidden + self.own(normed, normed)
        hidden = hidden + self.cross(self.norms[1](hidden), context)
        value, gate = self.gate(self.norms[2](hidden)).chunk(2, -1)
        hidden = hidden + self.out(value * functional.gelu(gate))
        return x + hidden.transpose(1, 2).reshape(batch, width, height, columns)


class DiffusionUNet(nn.Module):
    """What predicts the noise: time, text by cross attention, one skip."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.first = nn.Conv2d(4, 16, 3, padding=1)
        self.down, self.smaller = ResnetBlock(16, 32, 32), nn.Conv2d(32, 32, 3, 2, 1)
        self.middle, self.text = ResnetBlock(32, 32, 32), SpatialTransformer(32, 24)
        self.up, self.last = ResnetBlock(64, 16, 32), nn.Conv2d(16, 4, 3, padding=1)
        self.norm = nn.GroupNorm(4, 16)

    def forward(self, latents: Tensor, times: Tensor, context: Tensor) -> Tensor:
        time = self.time(time_embedding(times, 16).to(self.first.weight.dtype))
        high = self.down(self.first(latents), time)
        low = self.text(self.middle(self.smaller(high), time), context)
        low = functional.interpolate(low, scale_factor=2.0, mode="nearest")
        return self.last(functional.silu(self.norm(self.up(torch.cat([low, high], 1), time))))


class LatentDecoder(nn.Module):
    """From latents to an image: attention over all places, then twice the size, twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(4, 32, 3, padding=1), nn.GroupNorm(8, 32, eps=1e-6)
        self.q, self.k, self.v, self.out = (nn.Conv2d(32, 32, 1) for _ in range(4))
        self.ups = nn.ModuleList(nn.Conv2d(32, 32, 3, padding=1) for _ in range(2))
        self.last = nn.Conv2d(32, 3, 3, padding=1)

    def forward(self, latents: Tensor) -> Tensor:
        x = self.first(latents)
        normed = self.norm(x)
        q, k, v = (layer(normed).flatten(2) for layer in (self.q, self.k, self.v))
        weights = torch.softmax(torch.bmm(q.transpose(1, 2), k) / math.sqrt(32), -1)
        x = x + self.out(torch.bmm(v, weights.transpose(1, 2)).view_as(x))
        for up in self.ups:
            x = functional.silu(up(functional.interpolate(x, scale_factor=2.0)))
        return self.last(x).clamp(-1, 1)


class DiffusionTransformer(nn.Module):
    """Patches with a modulation of each layer by time and class."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.classes = nn.Conv2d(4, 32, 2, 2), nn.Embedding(11, 32)
        self.time, self.modulation = nn.Linear(16, 32), nn.ModuleList(nn.Linear(32, 6 * 32) for _ in range(2))
        self.attention = nn.ModuleList(CrossAttention(32, 32) for _ in range(2))
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.Linear(32, 64), nn.GELU("tanh"), nn.Linear(64, 32)) for _ in range(2)
        )
        self.out = nn.Linear(32, 16)

    def forward(self, latents: Tensor, times: Tensor, classes: Tensor) -> Tensor:
        x = self.patches(latents)
        batch, _, rows, columns = x.shape
        x = x.flatten(2).transpose(1, 2)
        given = self.time(time_embedding(times, 16).to(x.dtype)) + self.classes(classes)
        for modulation, attention, mlp in zip(self.modulation, self.attention, self.mlps, strict=True):
            a, b, c, d, e, f = modulation(functional.silu(given))[:, None].chunk(6, -1)
            normed = functional.layer_norm(x, (32,)) * (1 + b) + a
            x = x + c * attention(normed, normed)
            x = x + f * mlp(functional.layer_norm(x, (32,)) * (1 + e) + d)
        made = self.out(x).view(batch, rows, columns, 2, 2, 4)
        return torch.einsum("nhwpqc->nchpwq", made).reshape(batch, 4, 2 * rows, 2 * columns)


CASES = (
    Case(
        "diffusion-unet",
        "diffusion",
        DiffusionUNet,
        lambda _model: [
            by_position(torch.randn(n, 4, 16, 16), torch.randint(0, 1000, (n,)), torch.randn(n, 7, 24))
            for n in (2, 3, 2)
        ],
    ),
    Case(
        "latent-decoder",
        "diffusion",
        LatentDecoder,
        lambda _model: [by_position(torch.randn(1, 4, side, side)) for side in (8, 12, 8)],
    ),
    Case(
        "diffusion-transformer",
        "diffusion",
        DiffusionTransformer,
        lambda _model: [
            by_position(torch.randn(n, 4, 16, 16), torch.randint(0, 1000, (n,)), torch.randint(0, 11, (n,)))
            for n in (2, 3, 2)
        ],
    ),
)
