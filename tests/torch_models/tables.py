"""Recommendation from tables of categories, and series of time."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf
from torch import Tensor, nn

from tests.torch_models.case import Call, Case, by_position


class Dlrm(nn.Module):
    """Bags of embeddings and dense features, their products in pairs, a probability."""

    def __init__(self) -> None:
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
        self.bags = nn.ModuleList(nn.EmbeddingBag(20, 8, mode=mode) for mode in ("sum", "mean", "sum"))
        self.top = nn.Sequential(nn.Linear(8 + 6, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
        self.register_buffer("pairs", torch.tril_indices(4, 4, -1))

    def forward(self, dense: Tensor, categories: Tensor) -> Tensor:
        low = self.bottom(dense)
        vectors = torch.stack([low, *(bag(categories[:, n]) for n, bag in enumerate(self.bags))], 1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        return self.top(torch.cat([low, products[:, self.pairs[0], self.pairs[1]]], 1))


class DeepCross(nn.Module):
    """Crosses of features, layer by layer, beside a network."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(60, 4)
        self.register_buffer("offsets", torch.tensor([0, 20, 40]))
        self.crosses = nn.ModuleList(nn.Linear(17, 17) for _ in range(2))
        self.deep, self.out = nn.Sequential(nn.Linear(17, 16), nn.BatchNorm1d(16), nn.ReLU()), nn.Linear(33, 1)

    def forward(self, dense: Tensor, categories: Tensor) -> Tensor:
        first = torch.cat([dense, self.embedding(categories + self.offsets).flatten(1)], 1)
        crossed = first
        for layer in self.crosses:
            crossed = first * layer(crossed) + crossed
        return self.out(torch.cat([crossed, self.deep(first)], 1)).squeeze(-1)


class TwoTowers(nn.Module):
    """Users by what they saw, averaged over a mask; items; the best of them."""

    def __init__(self) -> None:
        super().__init__()
        self.items, self.user = nn.Embedding(50, 8, padding_idx=0), nn.Linear(8, 8)

    def forward(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        mask = (seen != 0).unsqueeze(-1)
        mean = (self.items(seen) * mask).sum(1) / mask.sum(1).clamp(min=1)
        user = nn.functional.normalize(self.user(mean), dim=-1)
        scores = user @ nn.functional.normalize(self.items.weight, dim=-1).t()
        best = scores.masked_fill(torch.arange(50) == 0, -torch.inf).topk(5)
        return best.values, best.indices


class NBeats(nn.Module):
    """Blocks that explain the past and foretell, each on what the others left."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 24 + 6)) for _ in range(3)
        )

    def forward(self, past: Tensor) -> Tensor:
        forecast = past[:, -1:]
        for block in self.blocks:
            back, ahead = block(past).split([24, 6], -1)
            past, forecast = past - back, forecast + ahead
        return forecast


class Decomposed(nn.Module):
    """A moving average as the trend, a linear forecast of it and of the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.average = nn.AvgPool1d(5, 1)
        self.trend, self.rest = nn.Linear(24, 6), nn.Linear(24, 6)

    def forward(self, past: Tensor) -> Tensor:
        mean, spread = past.mean(1, keepdim=True), past.std(1, keepdim=True, unbiased=False) + 1e-5
        x = ((past - mean) / spread).transpose(1, 2)
        padded = torch.cat([x[..., :1].repeat(1, 1, 2), x, x[..., -1:].repeat(1, 1, 2)], -1)
        trend = self.average(padded)
        return (self.trend(trend) + self.rest(x - trend)).transpose(1, 2) * spread + mean


class Forecaster(nn.Module):
    """Recurrence over a series, written step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.LSTMCell(3, 16), nn.Linear(16, 3)

    def forward(self, past: Tensor) -> Tensor:
        state = (past.new_zeros(len(past), 16), past.new_zeros(len(past), 16))
        for step in range(8):
            state = self.cell(past[:, step], state)
        return self.out(state[0])


def _patches(cls: Any, config: Any) -> nn.Module:
    sizes: dict[str, Any] = {"context_length": 24, "patch_length": 4, "prediction_length": 6, "d_model": 16}
    more = {"patch_stride": 4, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 32, "num_layers": 2}
    return cls(config(num_input_channels=3, **sizes, **more))


def _rows(_model: nn.Module) -> list[Call]:
    return [by_position(torch.randn(n, 5), torch.randint(0, 20, (n, 3))) for n in (4, 7, 4)]


def _seen(_model: nn.Module) -> list[Call]:
    return [by_position(torch.randint(0, 50, (n, 6))) for n in (3, 5, 3)]


def _bags(_model: nn.Module) -> list[Call]:
    return [by_position(torch.randn(n, 5), torch.randint(0, 20, (n, 3, 4))) for n in (4, 7, 4)]


def _series(_model: nn.Module) -> list[Call]:
    return [by_position(torch.randn(n, 24, 3)) for n in (2, 5, 2)]


CASES = (
    Case("dlrm", "recommendation", Dlrm, _bags),
    Case("deep-cross", "recommendation", DeepCross, _rows),
    Case("two-towers", "recommendation", TwoTowers, _seen),
    Case("n-beats", "series", NBeats, lambda _model: [by_position(torch.randn(n, 24)) for n in (2, 5, 2)]),
    Case("decomposed", "series", Decomposed, _series),
    Case("lstm-cells", "series", Forecaster, _series),
    Case("patch-tst", "transformers", lambda: _patches(hf.PatchTSTForPrediction, hf.PatchTSTConfig), _series),
    Case("patch-mixer", "transformers", lambda: _patches(hf.PatchTSMixerForPrediction, hf.PatchTSMixerConfig), _series),
)  # fmt: skip
