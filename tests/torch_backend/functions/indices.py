"""Lookups and writes at places, masks, windows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from torch_backend.functions.function import ANY, MATRIX, NUMBER, PAIR, REAL, Function, normal

FUNCTIONS: dict[str, Function] = {
    "embedding": Function(F.embedding, lambda n: (torch.randint(5, (2, n)), torch.randn(5, 6)), REAL),
    "embedding_bag": Function(
        lambda i, w: F.embedding_bag(i, w, mode="mean"), lambda n: (torch.randint(5, (n, 3)), torch.randn(5, 6))
    ),
    "index_select": Function(
        lambda x, i: x.index_select(1, i), lambda n: (torch.randn(3, 5, 2), torch.randint(5, (n,))), ANY
    ),
    "gather": Function(lambda x, i: x.gather(1, i), lambda n: (torch.randn(n, 6), torch.randint(6, (n, 4))), ANY),
    "gather of fewer rows": Function(
        lambda x, i: x.gather(1, i), lambda n: (torch.randn(n, 6), torch.randint(6, (n - 1, 4)))
    ),
    "take": Function(lambda x, i: x.take(i), lambda n: (torch.randn(n, 6), torch.randint(6, (4,)))),
    "take negative": Function(lambda x, i: x.take(-1 - i), lambda n: (torch.randn(n, 6), torch.randint(6, (4,)))),
    "take_along_dim": Function(lambda x: torch.take_along_dim(x, x.argsort(1), 1), MATRIX),
    "index": Function(lambda x, i: x[i], lambda n: (torch.randn(n, 6), torch.tensor([0, -1, 1])), ANY),
    "index of two dimensions": Function(
        lambda x, i, j: x[i, j],
        lambda n: (torch.randn(n, 6, 2), torch.tensor([0, -1, 1]), torch.tensor([5, 0, -6])),
        REAL,
    ),
    "index of the last dimensions": Function(
        lambda x, i: x[:, i, :, i], lambda n: (torch.randn(n, 6, 2, 6), torch.tensor([0, -1, 1]))
    ),
    "index of neighbours": Function(
        lambda x, i: x[:, i, i[:, None]], lambda n: (torch.randn(n, 6, 7, 2), torch.tensor([0, -1, 1]))
    ),
    "index by a mask": Function(lambda x: x[x > 0], MATRIX),
    "index by lists": Function(lambda x: x[[0, 2, -1]][:, [1, 1]], MATRIX, ANY),
    "index_put": Function(
        lambda x, i, v: x.index_put((i,), v),
        lambda n: (torch.randn(n, 6), torch.tensor([2, 0, -1]), torch.randn(3, 6)),
        ANY,
    ),
    "index_put of the second dimension": Function(
        lambda x, i: _written(x, (slice(None), i), 2.0), lambda n: (torch.randn(n, 6), torch.tensor([2, 0, -1])), NUMBER
    ),
    "index_put of the last dimensions": Function(
        lambda x, i, v: _written(x, (Ellipsis, i, i.flip(0)), v),
        lambda n: (torch.randn(n, 6, 5), torch.tensor([2, 0, -1]), torch.randn(n, 3)),
    ),
    "index_put of dimensions apart": Function(
        lambda x, i, v: _written(x, (i, slice(None), i), v),
        lambda n: (torch.randn(3, n, 6), torch.tensor([2, 0, -1]), torch.randn(3, n)),
    ),
    "index_put of a cache": Function(
        lambda k, p, h: _written(k, (slice(None), slice(None), p), h),
        lambda n: (torch.randn(2, 3, 8, n), torch.tensor([4, 5]), torch.randn(2, 3, 2, n)),
        REAL,
    ),
    "index_put accumulated": Function(
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
        lambda n: (torch.randn(n, 6), torch.tensor([2, 0, 2]), torch.randn(3, 6)),
        NUMBER,
    ),
    "index_put by a mask": Function(lambda x: _written(x, x > 0, 3), MATRIX, NUMBER),
    "index_put by a mask of rows": Function(lambda x: _written(x, x[:, 0] > 0, 3), MATRIX, NUMBER),
    "index_put by a mask of columns": Function(lambda x: _written(x, (slice(None), x[0] > 0), 3), MATRIX),
    "index_put by a mask of values": Function(lambda x: _written(x, x > 0, x[x > 0] * 2), MATRIX),
    "index_add": Function(
        lambda x, i, v: x.index_add(1, i, v, alpha=2),
        lambda n: (torch.randn(n, 6), torch.tensor([2, 0, 2]), torch.randn(n, 3)),
        NUMBER,
    ),
    "index_copy": Function(
        lambda x, i, v: x.index_copy(1, i, v),
        lambda n: (torch.randn(n, 6), torch.tensor([2, 0, 5]), torch.randn(n, 3)),
        REAL,
    ),
    "index_fill": Function(
        lambda x, i: x.index_fill(1, i, 2), lambda n: (torch.randn(n, 6), torch.tensor([2, 0])), NUMBER
    ),
    "index_reduce": Function(
        lambda x, i, v: x.index_reduce(0, i, v, "amax"),
        lambda n: (torch.randn(n, 6), torch.tensor([2, 0]), torch.randn(2, 6)),
    ),
    "scatter": Function(
        lambda x, i, v: x.scatter(1, i, v),
        lambda n: (
            torch.randn(n, 6),
            torch.arange(n)[:, None] % 6 + torch.zeros(n, 1, dtype=torch.int64),
            torch.randn(n, 1),
        ),
        ANY,
    ),
    "scatter of a number": Function(
        lambda x, i: x.scatter(1, i, 2), lambda n: (torch.randn(n, 6), torch.randint(6, (n, 3))), NUMBER
    ),
    "scatter of a longer source": Function(
        lambda x, i, v: x.scatter(0, i, v), lambda n: (torch.randn(n, 6), torch.tensor([[1, 0, 2]]), torch.randn(n, 6))
    ),
    "scatter into fewer columns": Function(
        lambda x, i, v: x.scatter(0, i, v),
        lambda n: (torch.randn(n, 6), torch.tensor([[1, 0, 2], [0, 1, 0]]), torch.randn(2, 3)),
    ),
    "scatter_add": Function(
        lambda x, i, v: x.scatter_add(1, i, v),
        lambda n: (torch.randn(n, 6), torch.randint(6, (n, 3)), torch.randn(n, 3)),
        NUMBER,
    ),
    "scatter_add of a longer source": Function(
        lambda x, i, v: x.scatter_add(0, i, v),
        lambda n: (torch.randn(n, 6), torch.randint(3, (2, 6)), torch.randn(n, 6)),
    ),
    "scatter_reduce": Function(
        lambda x, i, v: tuple(x.scatter_reduce(1, i, v, r) for r in ("sum", "prod", "amax", "amin")),
        lambda n: (torch.randn(n, 6), torch.randint(6, (n, 3)), torch.randn(n, 3)),
    ),
    "scatter_reduce mean": Function(
        lambda x, i, v: x.scatter_reduce(1, i, v, "mean"),
        lambda n: (torch.randn(n, 6), torch.randint(6, (n, 3)), torch.randn(n, 3)),
    ),
    "scatter_reduce without self": Function(
        lambda x, i, v: x.scatter_reduce(1, i, v, "amax", include_self=False),
        lambda n: (torch.randn(n, 6), torch.randint(6, (n, 3)), torch.randn(n, 3)),
    ),
    "select_scatter": Function(lambda x: x.select_scatter(x[:, 0] * 2, 1, -2), MATRIX, ANY),
    "slice_scatter": Function(lambda x: x.slice_scatter(x[:, :3] * 2, 1, 0, 6, 2), MATRIX, ANY),
    "diagonal_scatter": Function(lambda x: x.diagonal_scatter(x[0]), normal(6, 6), fixed=True),
    "masked_scatter": Function(lambda x, y: x.masked_scatter(x > 0, y), PAIR),
    "masked_scatter of rows": Function(lambda x, y: x.masked_scatter(x[:, :1] > 0, y.reshape(-1)), PAIR),
    "masked_select": Function(lambda x: x.masked_select(x > 0), MATRIX),
    "written slices": Function(
        lambda x: _written(_written(x, (slice(None), slice(1, 3)), 0.5), 0, 2.0), MATRIX, NUMBER
    ),
    "written in steps": Function(lambda x: _written(x, (slice(1, None), slice(None, None, 2)), x[1:, :3] * 2), MATRIX),
}


def _written(x: Tensor, place: Any, values: Any) -> Tensor:
    y = x.clone()
    y[place] = values
    return y
