"""Reductions, norms, running sums, distances, softmax."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F  # noqa: N812

from torch_backend.functions.function import MATRIX, NUMBER, PAIR, REAL, ROWS, Function, normal, tensors, within

FUNCTIONS: dict[str, Function] = {
    "max with indices": Function(lambda x: torch.max(x, 1), MATRIX, NUMBER),
    "min with indices": Function(lambda x: torch.min(x, 0, keepdim=True), MATRIX, NUMBER),
    "max over all": Function(torch.max, MATRIX, NUMBER),
    "aminmax": Function(lambda x: torch.aminmax(x, dim=0), MATRIX),
    "argmax over all": Function(torch.argmax, MATRIX),
    "argmax of equal numbers": Function(lambda x: (x > 0).int().argmax(1), MATRIX),
    "sum over several dimensions": Function(lambda x: x.sum((0, 2), keepdim=True), ROWS, NUMBER),
    "mean over negative dimensions": Function(lambda x: x.mean((-1, -2)), ROWS, REAL),
    "var with correction": Function(lambda x: torch.var(x, (0, 2), correction=0), ROWS, REAL),
    "var_mean": Function(lambda x: torch.var_mean(x, -1), MATRIX, REAL),
    "std_mean": Function(lambda x: torch.std_mean(x, 1, keepdim=True), ROWS),
    "norms": Function(
        lambda x: tuple(torch.linalg.vector_norm(x, p, 1) for p in (0, 1, 2, 3, 0.5, math.inf, -math.inf)), ROWS
    ),
    "norm of a type": Function(lambda x: torch.linalg.vector_norm(x, 2, 1), ROWS, REAL),
    "matrix norms": Function(
        lambda x: (torch.linalg.matrix_norm(x), torch.linalg.matrix_norm(x, 1), torch.linalg.matrix_norm(x, math.inf)),
        ROWS,
    ),
    "normalize": Function(lambda x: F.normalize(x, dim=1), ROWS, REAL),
    "median": Function(lambda x: torch.median(x, 1), normal(4, "n")),
    "nanmedian": Function(lambda x: torch.nanmedian(x), normal("n")),
    "quantile": Function(lambda x: torch.quantile(x, 0.3, dim=1), ROWS),
    "mode": Function(lambda x: torch.mode((x * 2).round(), 1)[0], MATRIX),
    "kthvalue": Function(lambda x: torch.kthvalue(x, 2, 1), MATRIX),
    "cumsum": Function(lambda x: x.cumsum(1), ROWS, NUMBER),
    "cumsum of truth values": Function(lambda x: (x > 0).cumsum(0), MATRIX),
    "cumprod": Function(lambda x: x.cumprod(1), within(0.5, 1.5, "n", 6), REAL),
    "cummax": Function(lambda x: x.cummax(0), MATRIX),
    "cummin": Function(lambda x: x.cummin(1), MATRIX),
    "logcumsumexp": Function(lambda x: x.logcumsumexp(1), MATRIX),
    "diff": Function(lambda x: torch.diff(x, dim=1), ROWS, NUMBER),
    "trapezoid": Function(lambda x: torch.trapezoid(x, dim=1), ROWS),
    "dist": Function(torch.dist, PAIR),
    "cdist": Function(torch.cdist, tensors((2, "n", 6), (2, 4, 6))),
    "pdist": Function(F.pdist, normal(5, 6), fixed=True),
    "pairwise_distance": Function(F.pairwise_distance, PAIR),
    "cosine_similarity": Function(lambda x, y: F.cosine_similarity(x, y, dim=-1), PAIR, REAL),
    "histc": Function(lambda x: torch.histc(x, 5, -2, 2), MATRIX),
    "bincount": Function(lambda i: torch.bincount(i, minlength=8), lambda n: (torch.randint(8, (n,)),)),
    "softmax": Function(lambda x: x.softmax(1), ROWS, REAL),
    "softmax into float": Function(lambda x: F.softmax(x, -1, dtype=torch.float32), ROWS, REAL),
    "softmax of closed rows": Function(lambda x: x.masked_fill(x < 9, -math.inf).softmax(-1), MATRIX),
    "log_softmax": Function(lambda x: x.log_softmax(-1), ROWS, REAL),
    "softmin": Function(lambda x: F.softmin(x, 1), ROWS, REAL),
    "gumbel-like": Function(lambda x: -torch.log(-torch.log(x)), within(0.1, 0.9, "n", 6)),
}
