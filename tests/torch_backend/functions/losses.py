"""Losses."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812

from torch_backend.functions.function import PAIR, REAL, Function, normal, tensors

FUNCTIONS: dict[str, Function] = {
    "mse_loss": Function(F.mse_loss, PAIR, REAL),
    "l1_loss": Function(F.l1_loss, PAIR),
    "smooth_l1_loss": Function(F.smooth_l1_loss, PAIR),
    "huber_loss": Function(F.huber_loss, PAIR),
    "cross_entropy": Function(F.cross_entropy, lambda n: (torch.randn(n, 6), torch.randint(6, (n,)))),
    "cross_entropy ignoring": Function(
        lambda x, t: F.cross_entropy(x, t, ignore_index=1, label_smoothing=0.1),
        lambda n: (torch.randn(n, 6), torch.randint(6, (n,))),
    ),
    "nll_loss": Function(
        lambda x, t: F.nll_loss(x, t, reduction="none"), lambda n: (torch.randn(n, 6), torch.randint(6, (n,)))
    ),
    "nll_loss of images": Function(F.nll_loss, lambda n: (torch.randn(2, 6, n, 3), torch.randint(6, (2, n, 3)))),
    "binary_cross_entropy": Function(lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()), PAIR),
    "binary_cross_entropy_with_logits": Function(lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()), PAIR),
    "kl_div": Function(lambda x, y: F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"), PAIR),
    "hinge_embedding_loss": Function(lambda x, y: F.hinge_embedding_loss(x, y.sign()), PAIR),
    "triplet_margin_loss": Function(F.triplet_margin_loss, tensors(("n", 6), ("n", 6), ("n", 6))),
    "poisson_nll_loss": Function(F.poisson_nll_loss, PAIR),
    "gaussian_nll_loss": Function(lambda x, y: F.gaussian_nll_loss(x, y, y.abs() + 1), PAIR),
    "ctc_loss": Function(
        lambda x: F.ctc_loss(
            x.log_softmax(-1), torch.tensor([[1, 2], [3, 1]]), torch.tensor([8, 8]), torch.tensor([2, 2])
        ),
        normal(8, 2, 5),
        fixed=True,
    ),
}
