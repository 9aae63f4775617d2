"""Matrix products."""

from __future__ import annotations

import torch
from torch import fx

from tilec.torch_backend.translation import Translation, translates
from tilec.torch_backend.values import Tensor

aten = torch.ops.aten


@translates(aten.mm.default, aten.bmm.default, aten.mv.default, aten.dot.default, aten.matmul.default)
def _product(t: Translation, node: fx.Node, a: Tensor, b: Tensor) -> str:
    return t.emit("MatMul", a.name, b.name)


@translates(aten.addmm.default, aten.baddbmm.default)
def _product_and_sum(
    t: Translation, node: fx.Node, c: Tensor, a: Tensor, b: Tensor, beta: float = 1, alpha: float = 1
) -> str:
    total = t.emit("MatMul", a.name, b.name)
    if alpha != 1:
        total = t.emit("Mul", total, t.literal(alpha, a.dtype))
    if beta == 0:
        return total
    added = c.name if beta == 1 else t.emit("Mul", c.name, t.literal(beta, c.dtype))
    return t.emit("Add", total, added)
