"""Orders and places in them."""

from __future__ import annotations

import torch

from torch_backend.functions.function import MATRIX, NUMBER, PAIR, WHOLE, Function, tensors

FUNCTIONS: dict[str, Function] = {
    "sort": Function(lambda x: x.sort(1), MATRIX, NUMBER),
    "sort descending": Function(lambda x: x.sort(0, descending=True)[0], MATRIX),
    "stable sort": Function(lambda x: torch.sort((x > 0).int(), dim=0, stable=True), MATRIX),
    "stable sort descending": Function(
        lambda x: torch.sort((x > 0).int(), dim=0, stable=True, descending=True), MATRIX
    ),
    "sort of truth values": Function(lambda x: torch.sort(x > 0, dim=0, stable=True), MATRIX),
    "argsort": Function(lambda x: x.argsort(-1), MATRIX),
    "msort": Function(torch.msort, MATRIX),
    "topk": Function(lambda x: x.topk(3, 1), MATRIX),
    "topk, whose places among equals are open": Function(lambda x: x.topk(3, 1)[0], MATRIX, NUMBER),
    "topk smallest": Function(lambda x: x.topk(2, 0, largest=False), MATRIX),
    "searchsorted": Function(lambda x, v: torch.searchsorted(x.sort(-1)[0], v), PAIR),
    "searchsorted right": Function(
        lambda x, v: torch.searchsorted(x.sort(-1)[0], v, right=True), tensors((6,), ("n", 4))
    ),
    "bucketize": Function(lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5, 2.0])), MATRIX),
    "bucketize right": Function(
        lambda x: torch.bucketize(x.round(), torch.tensor([-1.0, 0.0, 0.5, 2.0]), right=True, out_int32=True), MATRIX
    ),
    "isin": Function(lambda x: torch.isin(x, torch.tensor([1, 3, -2])), MATRIX, WHOLE),
    "unique": Function(lambda x: torch.unique(x.round()), MATRIX),
    "nonzero": Function(lambda x: torch.nonzero(x > 0), MATRIX),
}
