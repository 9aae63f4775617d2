"""Rules of decomposition beside those for core ATen operators: some of PyTorch's others, and some that it has not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

aten = torch.ops.aten

OTHERS = (
    aten.addmv.default,
    aten.dist.default,
    aten.ldexp.Tensor,
    aten.tril_indices.default,
    aten.triu_indices.default,
    aten._addmm_activation.default,
    aten._native_batch_norm_legit_functional.default,
    aten._batch_norm_with_update_functional.default,
    aten.narrow_copy.default,
    aten.permute_copy.default,
    aten.unbind_copy.int,
    aten.view_copy.default,
)
"""Operators whose rules in PyTorch are not among those for core operators."""


def addbmm(x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: complex = 1, alpha: complex = 1) -> Tensor:
    """A tensor and the sum of products of matrices; with `beta` 0 the tensor is not looked at."""
    product = torch.bmm(batch1, batch2).sum(0) * alpha
    return product if beta == 0 else x * beta + product


def cdist(x: Tensor, y: Tensor, p: float, _mode: int | None) -> Tensor:
    """Norms of the differences of all rows."""
    return torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)


def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: complex = 1) -> Tensor:
    """Slices added at places, none of which counts from the end."""
    added = source if alpha == 1 else source * alpha
    if not x.ndim:
        return decomposition_table[aten.index_add.default](x, dim, index, source, alpha=alpha)
    return x.scatter_add(dim, _along(dim, index, x, added), added)


def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Slices written at places, none of which counts from the end."""
    if not x.ndim:
        return decomposition_table[aten.index_copy.default](x, dim, index, source)
    return x.scatter(dim, _along(dim, index, x, source), source)


def index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """One value written at places."""
    filled = value.to(x.dtype) if isinstance(value, Tensor) else torch.full((), value, dtype=x.dtype, device=x.device)
    if not x.ndim:
        return index_fill(x[None], 0, index, value)[0]
    return x.index_put([None] * (dim % x.ndim) + [index], filled)


def _along(dim: int, index: Tensor, x: Tensor, source: Tensor) -> Tensor:
    """The place along a dimension of each element of a source."""
    shape = [1] * x.ndim
    shape[dim] = -1
    return index.long().reshape(shape).expand_as(source)


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The elements of a source, in order, in the places of a mask."""
    mask, whole = torch.broadcast_tensors(mask, x)
    places = mask.reshape(-1).long().cumsum(0) - 1  # -1 before the first one, which is an element, too
    return torch.where(mask, source.reshape(-1)[places].reshape(whole.shape), whole).contiguous()


def median(x: Tensor) -> Tensor:
    """The middle element, of two the smaller one; NaN where there is one."""
    flat = x.reshape(-1)
    middle = flat.sort()[0][(flat.shape[0] - 1) // 2]
    return torch.where(flat.isnan().any(), torch.nan, middle) if x.is_floating_point() else middle


def trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    _unroll_dim: int = 1,
) -> Tensor:
    """Sums of products of three tensors."""
    for dim in expand1:
        i1 = i1.unsqueeze(dim)
    for dim in expand2:
        i2 = i2.unsqueeze(dim)
    for dim in expand3:
        i3 = i3.unsqueeze(dim)
    return (i1 * i2 * i3).sum(list(sumdim))


RULES: dict[Any, Callable[..., Any]] = {op: decomposition_table[op] for op in OTHERS} | {
    aten.addbmm.default: addbmm,
    aten._cdist_forward.default: cdist,
    aten.index_add.default: index_add,
    aten.index_copy.default: index_copy,
    aten.index_fill.int_Scalar: index_fill,
    aten.index_fill.int_Tensor: index_fill,
    aten.masked_scatter.default: masked_scatter,
    aten.median.default: median,
    aten._trilinear.default: trilinear,
}
"""Operator -> its rule."""
