"""Products of tensors that PyTorch flattens to matrices, as products of the tensors themselves.

`view(mm(view(x, [b*s, k]), w), [b, s, n])` is `x @ w`, and `view(bmm(view(x, [b*h, m, k]), view(y, [b*h, k, n])),
[b, h, m, n])` is `x @ y`: without flattened dimensions every iterator of the product is one of its tensors'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from tilec.torch_backend.translation import Translation

aten = torch.ops.aten
_VIEWS = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)
_SAME = (aten.clone.default, aten.alias.default)


def unflattened_product(t: Translation, view: fx.Node) -> str | None:
    """The value of a view of a product of flattened tensors, None for any other."""
    product = view.args[0]
    if not isinstance(product, fx.Node) or product.op != "call_function":
        return None
    shape = view.meta["val"].shape
    match product.target:
        case aten.mm.default:
            left, right = product.args
            return _matrix(t, left, right, shape)
        case aten.addmm.default if not product.kwargs and len(product.args) == 3:
            bias, left, right = product.args
            total = _matrix(t, left, right, shape)
            known = t.known[bias]
            if total is None or known.rank != 1:
                return None
            return t.emit("Add", total, known.name)
        case aten.bmm.default:
            first, second = (_source(each, shape[:-2], 2) for each in product.args)
            if first is None or second is None:
                return None
            return t.emit("MatMul", t.known[first].name, t.known[second].name)
    return None


def _matrix(t: Translation, left: Any, right: Any, shape: Sequence[Any]) -> str | None:
    source = _source(left, shape[:-1], 1)
    return None if source is None else t.emit("MatMul", t.known[source].name, t.known[right].name)


def _source(flat: Any, lead: Sequence[Any], kept: int) -> fx.Node | None:
    """The tensor with leading extents `lead` whose view is `flat`, with the `kept` last dimensions as they are."""
    while isinstance(flat, fx.Node) and flat.target in _SAME:
        flat = flat.args[0]
    if not isinstance(flat, fx.Node) or flat.target not in _VIEWS or not isinstance(flat.args[0], fx.Node):
        return None
    source = flat.args[0]
    whole, tail = source.meta["val"].shape, flat.meta["val"].shape[-kept:]
    return source if _alike((*lead, *tail), whole) else None


def _alike(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two shapes have the same extents by their expressions, without an assumption about symbols."""
    return [_text(each) for each in a] == [_text(each) for each in b]


def _text(extent: int | torch.SymInt) -> str:
    return str(extent) if isinstance(extent, int) else str(extent.node.expr)
