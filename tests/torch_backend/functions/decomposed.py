"""What is decomposed by rules beside those for core operators."""

from __future__ import annotations

import math

import torch

from torch_backend.functions.function import NUMBER, REAL, Function, normal, special, tensors

FUNCTIONS: dict[str, Function] = {
    "addbmm of NaN that counts nothing": Function(
        lambda c, a, b: torch.addbmm(c * math.nan, a, b, beta=0, alpha=2), tensors(("n", 5), (2, "n", 6), (2, 6, 5))
    ),
    "cdist of other norms": Function(
        lambda x, y: tuple(torch.cdist(x, y, p) for p in (0, 1, 1.5, math.inf)), tensors(("n", 3), (4, 3))
    ),
    "cdist of itself": Function(lambda x: torch.cdist(x, x), normal("n", 3)),
    "ldexp": Function(torch.ldexp, lambda n: (torch.randn(n, 6), torch.randint(-4, 5, (6,))), REAL),
    "median of all": Function(lambda x: (x.median(), x.reshape(-1)[:-1].median()), normal("n", 6), NUMBER),
    "median of NaN": Function(torch.median, special),
    "triangles": Function(
        lambda x: (x[torch.triu_indices(4, 5, 1).unbind()], torch.tril_indices(4, 3, -1)), normal(4, 5)
    ),
}
