"""Normalisations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from torch_backend.functions.function import IMAGES, REAL, Function, normal, tensors

FUNCTIONS: dict[str, Function] = {
    "layer_norm": Function(lambda x, w, b: F.layer_norm(x, (5,), w, b), tensors((3, "n", 5), (5,), (5,)), REAL),
    "layer_norm bare": Function(lambda x: F.layer_norm(x, x.shape[1:]), normal("n", 4, 5)),
    "layer_norm of mixed types": Function(
        lambda x, w, b: F.layer_norm(x.bfloat16(), (5,), w.bfloat16(), b.bfloat16()),
        tensors((3, "n", 5), (5,), (5,)),
    ),
    "layer_norm under autocast": Function(
        lambda x, w, b: _autocast(F.layer_norm, x.bfloat16(), (5,), w, b), tensors((3, "n", 5), (5,), (5,))
    ),
    "linear under autocast": Function(lambda x, w, b: _autocast(F.linear, x, w, b), tensors((3, "n", 5), (6, 5), (6,))),
    "attention under autocast": Function(
        lambda q, k: _autocast(F.scaled_dot_product_attention, q, k, k), tensors((2, 2, "n", 8), (2, 2, 5, 8))
    ),
    "group_norm": Function(lambda x, w, b: F.group_norm(x, 2, w, b), tensors((2, 4, "n", 9), (4,), (4,)), REAL),
    "group_norm bare": Function(lambda x: F.group_norm(x, 2), tensors((2, 4, "n"))),
    "batch_norm": Function(
        lambda x, m, v, w, b: F.batch_norm(x, m, v.abs() + 1, w, b),
        tensors((2, 4, "n", 9), (4,), (4,), (4,), (4,)),
        REAL,
    ),
    "batch_norm training": Function(lambda x: F.batch_norm(x, None, None, training=True), tensors((2, 4, "n", 9))),
    "instance_norm": Function(F.instance_norm, IMAGES, REAL),
    "rms_norm": Function(lambda x, w: F.rms_norm(x, (5,), w), tensors((3, "n", 5), (5,)), REAL),
    "local_response_norm": Function(lambda x: F.local_response_norm(x, 3), IMAGES),
}


def _autocast(function: Callable[..., Tensor], *inputs: Any) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return function(*inputs)
