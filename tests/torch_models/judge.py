"""Results of a call beside those of eager PyTorch: in float64 for values, in the same types for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree

FLOOR = {"f32": 1e-4, "bf16": 1e-2, "f16": 2e-3}
"""Share of a result's largest value within which arithmetic in another order stays, by the type of a run."""

AS_EXACT = 4.0
"""How many times as far from the exact result as eager PyTorch's a result may be."""


def tensors(results: Any) -> list[Tensor]:
    """The tensors of a structure, in order."""
    return [leaf for leaf in _pytree.tree_leaves(results) if isinstance(leaf, Tensor)]


def error(found: Tensor, exact: Tensor) -> float:
    """The largest difference, as a share of the largest finite value; infinite where NaN or infinities differ."""
    a, b = found.detach().double(), exact.detach().double()
    same = (a == b) | (a.isnan() & b.isnan())
    if same.all():
        return 0.0
    off = (a - b).abs()[~same].nan_to_num(nan=torch.inf).max().item()
    finite = b[b.isfinite()].abs()
    return off / ((finite.max().item() if finite.numel() else 0.0) or 1.0)


def faults(ours: Any, eager: Any, exact: Any, kind: str) -> list[str]:
    """What is wrong with the results of a call, one text each. In 16 bits a place, such as that of a maximum, may be
    any where eager PyTorch's is not the exact one: roundings decide it."""
    sets = [tensors(each) for each in (ours, eager, exact)]
    if len({len(each) for each in sets}) > 1:
        return [f"{len(sets[0])} tensors instead of {len(sets[1])}"]
    found: list[str] = []
    for number, (a, b, c) in enumerate(zip(*sets, strict=True)):
        said = _fault(a, b, c, kind)
        if said:
            found.append(f"result {number}: {said}")
    return found


def _fault(ours: Tensor, eager: Tensor, exact: Tensor, kind: str) -> str:
    if ours.shape != eager.shape:
        return f"shape {tuple(ours.shape)} instead of {tuple(eager.shape)}"
    if ours.dtype != eager.dtype:
        return f"{ours.dtype} instead of {eager.dtype}"
    if not eager.dtype.is_floating_point:
        decided = (eager == exact) if kind != "f32" and eager.shape == exact.shape else torch.ones_like(eager).bool()
        return "" if torch.equal(ours[decided], eager[decided]) else "other values than eager"
    off, its = error(ours, exact), error(eager, exact)
    if off > max(FLOOR[kind], AS_EXACT * its):
        return f"error {off:.1e}, eager's {its:.1e}"
    return ""


def worst(ours: Any, exact: Any) -> float:
    """The largest error of floating-point results."""
    pairs = zip(tensors(ours), tensors(exact), strict=False)
    return max((error(a, b) for a, b in pairs if a.is_floating_point() and a.shape == b.shape), default=0.0)


def other_strides(ours: Any, eager: Any) -> list[str]:
    """Results that lie otherwise in memory than eager PyTorch's."""
    pairs = zip(tensors(ours), tensors(eager), strict=False)
    return [
        f"result {number}: strides {a.stride()} instead of {b.stride()}"
        for number, (a, b) in enumerate(pairs)
        if _telling(a.shape, a.stride()) != _telling(b.shape, b.stride())
    ]


def _telling(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """The strides of dimensions that have several places; none where there is no element."""
    return [] if 0 in shape else [stride for size, stride in zip(shape, strides, strict=True) if size > 1]
