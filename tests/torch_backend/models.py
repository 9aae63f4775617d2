"""Small modules in the style of torchvision, timm and transformers, each with inputs for a size."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Bottleneck(nn.Module):
    def __init__(self, width: int, stride: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width // 2, 1, bias=False),
            nn.BatchNorm2d(width // 2),
            nn.ReLU(inplace=True),
            nn.Conv2d(width // 2, width // 2, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width // 2),
            nn.ReLU(inplace=True),
            nn.Conv2d(width // 2, width, 1, bias=False),
            nn.BatchNorm2d(width),
        )
        self.skip = nn.Conv2d(width, width, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Bottleneck(16), Bottleneck(16, 2))
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class SqueezeExcite(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.up(functional.silu(self.down(x.mean((2, 3), keepdim=True)))))


class MobileNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1),
            nn.Hardswish(),
            nn.Conv2d(16, 16, 3, 1, 1, groups=16),
            nn.BatchNorm2d(16),
            nn.ReLU6(),
            SqueezeExcite(16),
            nn.Conv2d(16, 24, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return functional.avg_pool2d(self.body(x), 2).flatten(1)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = (
            nn.Conv2d(3, 8, 3, padding=1),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.Conv2d(16, 16, 3, 1, 1),
        )
        self.up1, self.up2 = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 8, 3, padding=1)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = functional.relu(self.a(x))
        b = functional.relu(self.b(functional.max_pool2d(a, 2)))
        c = functional.leaky_relu(self.c(functional.max_pool2d(b, 2)), 0.1)
        d = functional.interpolate(self.up2(c), scale_factor=2, mode="bilinear", align_corners=False)
        e = self.up1(torch.cat([d, b[:, :8]], 1))
        return self.out(torch.cat([a, e], 1))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        b, n, w = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, n, w))


class Block(nn.Module):
    def __init__(self, width: int, causal: bool = False) -> None:
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, 4, causal)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.attention(self.n1(x), mask)
        return x + self.mlp(self.n2(x))


class ViT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 8, 8)
        self.cls, self.positions = nn.Parameter(torch.randn(1, 1, 32)), nn.Parameter(torch.randn(1, 17, 32))
        self.blocks, self.norm, self.head = nn.Sequential(Block(32), Block(32)), nn.LayerNorm(32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


class Bert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(100, 32), nn.Embedding(128, 32)
        self.norm, self.blocks = nn.LayerNorm(32), nn.ModuleList([Block(32), Block(32)])

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        extended = (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        for block in self.blocks:
            x = block(x, extended)
        return x


class Gpt2(nn.Module):
    """One step behind a cache of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.norm = nn.Embedding(100, 32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)

    def forward(self, ids: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.words(ids)
        q, k, v = (y.unflatten(-1, (4, 8)).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1))
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        n, total = q.shape[2], keys.shape[2]
        mask = torch.ones(n, total, dtype=torch.bool).tril(total - n)
        scores = (q @ keys.transpose(-1, -2) / math.sqrt(8)).masked_fill(~mask, float("-inf"))
        y = (scores.softmax(-1) @ values).transpose(1, 2).flatten(2)
        return (x + self.out(y)) @ self.words.weight.t(), keys, values


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(32) + 0.5)
        self.q, self.k, self.v = (
            nn.Linear(32, 32, bias=False),
            nn.Linear(32, 16, bias=False),
            nn.Linear(32, 16, bias=False),
        )
        self.gate, self.up, self.down = (nn.Linear(*s, bias=False) for s in ((32, 64), (32, 64), (64, 32)))
        self.register_buffer("frequencies", 1.0 / 10000 ** (torch.arange(0, 8, 2) / 8))

    def norm(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale

    def rotated(self, x: Tensor) -> Tensor:
        angles = torch.outer(torch.arange(x.shape[2]).float(), self.frequencies)
        angles = torch.cat([angles, angles], -1)
        left, right = x.chunk(2, -1)
        return x * angles.cos() + torch.cat([-right, left], -1) * angles.sin()

    def forward(self, x: Tensor) -> Tensor:
        b, n, _ = x.shape
        y = self.norm(x)
        q, k, v = (f(y).view(b, n, -1, 8).transpose(1, 2) for f in (self.q, self.k, self.v))
        q, k = self.rotated(q), self.rotated(k)
        k, v = (each.repeat_interleave(2, 1) for each in (k, v))
        x = x + functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, 32)
        y = self.norm(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Recurrent(nn.Module):
    """An LSTM cell written out, a step at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(16, 24), nn.Linear(24, 5)

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(x.shape[0], 24)
        rows = []
        for step in range(4):
            h, c = self.cell(x[:, step], (h, c))
            rows.append(h)
        return self.head(torch.stack(rows, 1))


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.LSTM(16, 24, batch_first=True), nn.Linear(24, 5)

    def forward(self, x: Tensor) -> Tensor:
        return torch.log_softmax(self.head(torch.relu(self.rnn(x)[0])), -1)


class Conformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(32), nn.LayerNorm(32)
        self.attention, self.point = Attention(32, 4), nn.Conv1d(32, 64, 1)
        self.deep, self.batch, self.last = (
            nn.Conv1d(32, 32, 15, padding=7, groups=32),
            nn.BatchNorm1d(32),
            nn.Conv1d(32, 32, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.n1(x))
        y = functional.glu(self.point(self.n2(x).transpose(1, 2)), 1)
        return x + self.last(functional.silu(self.batch(self.deep(y)))).transpose(1, 2)


class GroupNorms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c1, self.c2, self.n1 = nn.Conv2d(3, 16, 3, 1, 1), nn.Conv2d(16, 16, 3, 1, 1), nn.GroupNorm(4, 16)
        self.n2 = nn.InstanceNorm2d(16, affine=True)

    def forward(self, x: Tensor) -> Tensor:
        return functional.elu(self.n2(self.c2(functional.silu(self.n1(self.c1(x))))))


class Masked(nn.Module):
    """Attention whose mask closes whole rows."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class Einsum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(4, 16, 8))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.einsum("bnd,hde->bhne", x, self.w)
        return torch.einsum("bhne,bhme->bhnm", y, y).softmax(-1).sum(1)


class Indexing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("order", torch.tensor([3, 1, -1, 0]))

    def forward(self, x: Tensor, rows: Tensor) -> Tensor:
        y = x[:, self.order] + x[:, [0, 1, 2, 3]].flip(1)
        picked = x[torch.arange(x.shape[0]), rows]
        best, places = y.topk(2, dim=-1)
        gathered = torch.gather(x, 2, places[:, :1].expand(-1, 5, -1))
        return (
            picked[:, None, :2]
            + best
            + gathered[:, :4]
            + x[..., ::2].mean(-1, keepdim=True)[:, :4]
            + y.argmax(-1, True)
        )


class InPlace(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        y[:, 1:3] = 0.5
        y[:, 0] += 1
        y.mul_(2).clamp_(-1, 3)
        self.count += 1
        return y + self.count.sum()


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(16, 8), nn.ModuleList([nn.Linear(16, 16) for _ in range(8)])

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        routed = torch.zeros_like(self.gate(x)).scatter(-1, chosen, weights)
        return sum(routed[..., n, None] * torch.relu(expert(x)) for n, expert in enumerate(self.experts))


class Shuffle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 32, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.pixel_shuffle(torch.tanh(self.body(x)), 2)
        a, b = y.split(4, 1)
        return torch.cat(
            [functional.pad(a[..., 1:, :], (0, 0, 1, 0)), functional.interpolate(b[:, :, ::2, ::2], scale_factor=2)], 1
        )


class Scores(nn.Module):
    """Comparisons, integers, sums of truth values, variances."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        positive = (x > 0) & ~torch.isnan(x)
        counts = positive.sum(-1)
        spread = x.var(-1) + x.std(-1, unbiased=False)
        return torch.where(positive, x, x.abs() // 0.5), counts % 3, spread + counts.float().cumsum(0)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu", norm_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


Inputs = Callable[[int], tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """A module and its inputs at a size, dimension `varies[k]` of input k; `breaks`: PyTorch cuts its graph."""

    module: Callable[[], nn.Module]
    inputs: Inputs
    varies: tuple[int, ...] = (0,)
    breaks: bool = False

    def marked(self, n: int) -> tuple[Any, ...]:
        """Inputs at a size that is said to vary."""
        inputs = self.inputs(n)
        for tensor, dim in zip(inputs, self.varies, strict=False):
            if dim >= 0:
                torch._dynamo.mark_dynamic(tensor, dim)
        return inputs


def images(n: int) -> tuple[Tensor, ...]:
    return (torch.randn(n, 3, 32, 32),)


def rows(n: int) -> tuple[Tensor, ...]:
    return (torch.randn(2, n, 32),)


CASES = {
    "resnet": Case(ResNet, images),
    "mobilenet": Case(MobileNet, images),
    "unet": Case(UNet, images),
    "vit": Case(ViT, images),
    "bert": Case(
        Bert,
        lambda n: (torch.randint(100, (2, n)), (torch.rand(2, n) < 0.8).long().index_fill(1, torch.tensor(0), 1)),
        (1, 1),
    ),
    "gpt2": Case(
        Gpt2, lambda n: (torch.randint(100, (2, 3)), torch.randn(2, 4, n, 8), torch.randn(2, 4, n, 8)), (-1, 2, 2)
    ),
    "llama": Case(Llama, rows, (1,)),
    "lstm cell": Case(Recurrent, lambda n: (torch.randn(n, 4, 16),)),
    "lstm": Case(Lstm, lambda n: (torch.randn(n, 6, 16),), breaks=True),
    "conformer": Case(Conformer, rows, (1,)),
    "group norm": Case(GroupNorms, images),
    "masked attention": Case(
        Masked,
        lambda n: (
            torch.randn(2, 4, n, 8),
            *torch.randn(2, 2, 4, 9, 8),
            torch.rand(2, 1, n, 9).gt(0.4).index_fill(2, torch.tensor(1), False),
        ),
        (2, -1, -1, 2),
    ),
    "einsum": Case(Einsum, lambda n: (torch.randn(2, n, 16),), (1,)),
    "indexing": Case(Indexing, lambda n: (torch.randn(n, 5, 6), torch.randint(5, (n,))), (0, 0)),
    "in place": Case(InPlace, lambda n: (torch.randn(n, 4),)),
    "experts": Case(Experts, lambda n: (torch.randn(n, 16),)),
    "shuffle": Case(Shuffle, images),
    "scores": Case(Scores, lambda n: (torch.randn(n, 7),)),
    "encoder": Case(Encoder, rows, (1,)),
    "no parameters": Case(nn.Softplus, lambda n: (torch.randn(n, 3),)),
}
