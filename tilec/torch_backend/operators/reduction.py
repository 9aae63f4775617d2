"""Reductions, softmax, order."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx

from tilec.torch_backend.operators.movement import axis
from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import ONNX_TYPES, Size, Tensor

aten = torch.ops.aten
Dims = int | Sequence[int] | None


def axes(x: Tensor, dims: Dims) -> list[int]:
    """Dimensions counted from 0; all of them where none are given."""
    if dims is None or dims == []:
        return list(range(x.rank))
    return [axis(x, d) for d in ([dims] if isinstance(dims, int) else dims)]


def reduced(t: Translation, op: str, x: str, places: Sequence[int], keep: bool) -> str:
    """A reduction over these dimensions."""
    if not places:
        return t.emit("Identity", x)
    return t.emit(op, x, t.onnx.integers(places), keepdims=int(keep))


@translates(aten.sum.default, aten.sum.dim_IntList)
def _sum(
    t: Translation, node: fx.Node, x: Tensor, dims: Dims = None, keep: bool = False, dtype: torch.dtype | None = None
) -> str:
    return reduced(t, "ReduceSum", t.cast(x, node.meta["val"].dtype), axes(x, dims), keep)


@translates(aten.mean.default, aten.mean.dim)
def _mean(
    t: Translation, node: fx.Node, x: Tensor, dims: Dims = None, keep: bool = False, dtype: torch.dtype | None = None
) -> str:
    return reduced(t, "ReduceMean", t.cast(x, node.meta["val"].dtype), axes(x, dims), keep)


@translates(aten.prod.default, aten.prod.dim_int)
def _product(
    t: Translation, node: fx.Node, x: Tensor, dims: Dims = None, keep: bool = False, dtype: torch.dtype | None = None
) -> str:
    return reduced(t, "ReduceProd", t.cast(x, node.meta["val"].dtype), axes(x, dims), keep)


@translates(aten.amax.default, aten.max.default)
def _largest(t: Translation, node: fx.Node, x: Tensor, dims: Dims = None, keep: bool = False) -> str:
    return reduced(t, "ReduceMax", x.name, axes(x, dims), keep)


@translates(aten.amin.default, aten.min.default)
def _least(t: Translation, node: fx.Node, x: Tensor, dims: Dims = None, keep: bool = False) -> str:
    return reduced(t, "ReduceMin", x.name, axes(x, dims), keep)


@translates(aten.max.dim, aten.min.dim)
def _extreme_and_place(t: Translation, node: fx.Node, x: Tensor, dim: int, keep: bool = False) -> list[str]:
    kind = "Max" if node.target is aten.max.dim else "Min"
    value = reduced(t, f"Reduce{kind}", x.name, [axis(x, dim)], keep)
    return [value, t.emit(f"Arg{kind}", x.name, axis=axis(x, dim), keepdims=int(keep))]


@translates(aten.argmax.default, aten.argmin.default)
def _place(t: Translation, node: fx.Node, x: Tensor, dim: int | None = None, keep: bool = False) -> str:
    op = "ArgMax" if node.target is aten.argmax.default else "ArgMin"
    if dim is not None:
        return t.emit(op, x.name, axis=axis(x, dim), keepdims=int(keep))
    flat = t.emit("Reshape", x.name, t.onnx.integers([-1]))
    return t.emit(op, flat, axis=0, keepdims=0)


@translates(aten.any.default, aten.any.dim, aten.any.dims, aten.all.default, aten.all.dim)
def _truth(t: Translation, node: fx.Node, x: Tensor, dims: Dims = None, keep: bool = False) -> str:
    """Over truth values as numbers."""
    some = node.target in (aten.any.default, aten.any.dim, aten.any.dims)
    numbers = t.emit("Cast", t.cast(x, torch.bool), to=ONNX_TYPES[torch.int32])
    made = reduced(t, "ReduceMax" if some else "ReduceMin", numbers, axes(x, dims), keep)
    return t.emit("Cast", made, to=ONNX_TYPES[torch.bool])


@translates(aten.var.correction)
def _variance(
    t: Translation, node: fx.Node, x: Tensor, dims: Dims = None, correction: float | None = None, keepdim: bool = False
) -> str:
    return _spread(t, x, axes(x, dims), correction, keepdim)[0]


@translates(aten.var_mean.correction)
def _variance_and_mean(
    t: Translation, node: fx.Node, x: Tensor, dims: Dims = None, correction: float | None = None, keepdim: bool = False
) -> list[str]:
    places = axes(x, dims)
    spread, middle = _spread(t, x, places, correction, keepdim)
    return [spread, middle if keepdim or not places else t.emit("Squeeze", middle, t.onnx.integers(places))]


def _spread(t: Translation, x: Tensor, places: Sequence[int], correction: float | None, keep: bool) -> tuple[str, str]:
    """Sum of squared distances from the mean over the count less the correction; the mean."""
    middle = reduced(t, "ReduceMean", x.name, places, True)
    apart = t.emit("Sub", x.name, middle)
    total = reduced(t, "ReduceSum", t.emit("Mul", apart, apart), places, keep)
    sizes: list[int | Size] = [t.extent(x, d) for d in places]
    count = t.emit("ReduceProd", t.shape(sizes), keepdims=0)
    count = t.emit("Cast", count, to=ONNX_TYPES[x.dtype])
    less = t.emit("Sub", count, t.literal(1 if correction is None else correction, x.dtype))
    # PyTorch divides by no less than 0
    return t.emit("Div", total, t.emit("Max", less, t.literal(0, x.dtype))), middle


@translates(aten._softmax.default, aten._log_softmax.default)
def _softmax(t: Translation, node: fx.Node, x: Tensor, dim: int, half_to_float: bool) -> str:
    op = "Softmax" if node.target is aten._softmax.default else "LogSoftmax"
    return t.emit(op, t.cast(x, node.meta["val"].dtype), axis=axis(x, dim))


@translates(aten.cumsum.default, aten.cumprod.default)
def _cumulated(t: Translation, node: fx.Node, x: Tensor, dim: int, dtype: torch.dtype | None = None) -> str:
    name = t.cast(x, node.meta["val"].dtype)
    if not x.rank:
        return t.emit("Identity", name)
    op = "CumSum" if node.target is aten.cumsum.default else "CumProd"
    return t.emit(op, name, t.onnx.constant(axis(x, dim), "int64"))


@translates(aten._linalg_det.default)
def _determinant(t: Translation, node: fx.Node, x: Tensor) -> list[str | None]:
    if any(user.args[1] != 0 and user.users for user in node.users):
        raise UntranslatableError("the factors of a determinant")
    return [t.emit("Det", x.name), None, None]


@translates(aten.topk.default)
def _topk(
    t: Translation, node: fx.Node, x: Tensor, k: int | Size, dim: int = -1, largest: bool = True, ordered: bool = True
) -> list[str]:
    return t.onnx.emit_several("TopK", 2, x.name, t.integer(k), axis=axis(x, dim), largest=int(largest))


@translates(aten.sort.stable)
def _stable_sort(
    t: Translation, node: fx.Node, x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> list[str]:
    """Of equal elements the first comes first, as it does in ONNX."""
    return _sort(t, node, x, dim, descending)


@translates(aten.sort.default)
def _sort(t: Translation, node: fx.Node, x: Tensor, dim: int = -1, descending: bool = False) -> list[str]:
    if not x.rank:
        raise UntranslatableError("the order of a scalar")
    k = t.integer(t.extent(x, axis(x, dim)))
    return t.onnx.emit_several("TopK", 2, x.name, k, axis=axis(x, dim), largest=int(descending))
