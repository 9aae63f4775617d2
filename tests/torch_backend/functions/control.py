"""Branches, and numbers that vary."""

from __future__ import annotations

import torch

from torch_backend.functions.function import MATRIX, Function

FUNCTIONS: dict[str, Function] = {
    "cond": Function(lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)) + 1, MATRIX),
    "a size as a number": Function(lambda x: x * x.shape[0] + x.shape[0] ** 2, MATRIX),
    "a size as a fraction": Function(lambda x: x * (x.shape[0] / 3) + x.shape[0] ** -0.5, MATRIX),
    "an integer that varies": Function(lambda x, k: (x * k, x + k), lambda n: (torch.randn(4, 6), n)),
    "an integer as an end": Function(lambda x, k: x[:, :k] * 2, lambda n: (torch.randn(3, 20), n)),
    "an integer as a shift": Function(lambda x, k: x.roll(k, 0), lambda n: (torch.randn(3, 20), n)),
    "a fraction that varies": Function(lambda x, k: x * k + 1, lambda n: (torch.randn(4, 6), n / 7)),
    "tolist": Function(lambda x: x.sum().item() + x, MATRIX),
}
