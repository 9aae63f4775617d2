"""Tensors of no others' elements."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812

from torch_backend.functions.function import ANY, MATRIX, NUMBER, VECTOR, Function, normal

FUNCTIONS: dict[str, Function] = {
    "zeros": Function(lambda x: torch.zeros(x.shape[0], 3) + x[:, :1], MATRIX),
    "full": Function(lambda x: torch.full((x.shape[0], 2), 7, dtype=x.dtype) + x[:, :2], MATRIX, NUMBER),
    "likes": Function(lambda x: (torch.zeros_like(x), torch.ones_like(x) + x, torch.full_like(x, 3)), MATRIX, ANY),
    "new": Function(
        lambda x: (x.new_zeros(3), x.new_ones(2, 2), x.new_full((2,), 1), x.new_tensor([1, 0])), MATRIX, ANY
    ),
    "arange": Function(lambda x: torch.arange(x.shape[0]) * x[:, 0], MATRIX),
    "arange of fractions": Function(lambda x: torch.arange(0, 2, 0.3) + x, normal("n", 7)),
    "arange backwards": Function(lambda x: torch.arange(x.shape[0], 0, -1) + x[:, 0], MATRIX),
    "linspace": Function(lambda x: torch.linspace(-1, 1, 6) * x, MATRIX),
    "linspace of a size": Function(lambda x: torch.linspace(0, 1, x.shape[0]) * x[:, 0], MATRIX),
    "logspace": Function(lambda x: torch.logspace(0, 2, 6) * x, MATRIX),
    "eye": Function(lambda x: torch.eye(6) + x, normal(6, 6), fixed=True),
    "eye of a size": Function(lambda x: x @ torch.eye(x.shape[1]), normal(3, "n")),
    "hann_window": Function(lambda x: torch.hann_window(6) * x, MATRIX),
    "one_hot": Function(lambda i: F.one_hot(i, 5), lambda n: (torch.randint(5, (n, 2)),)),
    "vander": Function(lambda x: torch.vander(x, 4), VECTOR),
    "scalar_tensor": Function(lambda x: x + torch.tensor(0.5), MATRIX),
    "empty rows": Function(lambda x: (x[:0] + 1, x[:0].sum(0), torch.cat([x[:0], x])), MATRIX),
}
