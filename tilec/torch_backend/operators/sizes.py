"""Arithmetic on symbolic sizes: Python's operators on integers."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import torch
from torch import fx

from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import Size, Tensor

aten = torch.ops.aten

_ARITHMETIC = {operator.add: "Add", operator.sub: "Sub", operator.mul: "Mul", operator.floordiv: "Div"}


@translates(*_ARITHMETIC)
def _arithmetic(t: Translation, node: fx.Node, left: int | Size, right: int | Size) -> Size:
    """Sizes are not negative, so that ONNX's division, which truncates, is Python's."""
    if not all(isinstance(each, int | Size) for each in (left, right)):
        raise UntranslatableError(f"{node.target} of other things than sizes")
    names = [t.operand(each, torch.int64) for each in (left, right)]
    return Size(t.emit(_ARITHMETIC[node.target], *names))


@translates(operator.mod)
def _remainder(t: Translation, node: fx.Node, left: int | Size, right: int | Size) -> Size:
    return Size(t.emit("Mod", t.operand(left, torch.int64), t.operand(right, torch.int64)))


@translates(operator.neg)
def _negative(t: Translation, node: fx.Node, value: int | Size) -> Size:
    return Size(t.emit("Neg", t.operand(value, torch.int64)))


@translates(torch.sym_max)
def _largest(t: Translation, node: fx.Node, left: int | Size, right: int | Size) -> Size:
    return Size(t.emit("Max", t.operand(left, torch.int64), t.operand(right, torch.int64)))


@translates(torch.sym_min)
def _least(t: Translation, node: fx.Node, left: int | Size, right: int | Size) -> Size:
    return Size(t.emit("Min", t.operand(left, torch.int64), t.operand(right, torch.int64)))


@translates(aten.sym_size.int)
def _extent(t: Translation, node: fx.Node, value: Tensor, dim: int) -> int | Size:
    return t.extent(value, dim)


@translates(aten.sym_numel.default)
def _count(t: Translation, node: fx.Node, value: Tensor) -> Size:
    return Size(t.emit("Size", value.name))


@translates(operator.pow)
def _power(t: Translation, node: fx.Node, value: int | Size, exponent: int | Size) -> Size:
    return Size(t.emit("Pow", t.operand(value, torch.int64), t.operand(exponent, torch.int64)))


@translates(torch.sym_sum)
def _total(t: Translation, node: fx.Node, values: Sequence[int | Size]) -> Size:
    return Size(t.emit("ReduceSum", t.shape(values), keepdims=0))
