"""Arithmetic on symbolic sizes: Python's operators on integers."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import torch
from torch import fx

from tilec.torch_backend.translation import Translation, UntranslatableError, translates
from tilec.torch_backend.values import ONNX_TYPES, Number, Size, Tensor

aten = torch.ops.aten

_ARITHMETIC = {operator.add: "Add", operator.sub: "Sub", operator.mul: "Mul", operator.floordiv: "Div"}


@translates(*_ARITHMETIC)
def _arithmetic(t: Translation, node: fx.Node, left: Number, right: Number) -> Size:
    """Sizes are not negative, so that ONNX's division, which truncates, is Python's."""
    dtype = kind_of(left, right)
    if dtype != torch.int64 and node.target is operator.floordiv:
        raise UntranslatableError("it rounds a quotient of fractions")
    names = [t.operand(each, dtype) for each in (left, right)]
    return Size(t.emit(_ARITHMETIC[node.target], *names), dtype)


def kind_of(*values: Number) -> torch.dtype:
    """The type in which Python combines numbers."""
    real = any(isinstance(each, float) or (isinstance(each, Size) and each.dtype != torch.int64) for each in values)
    return torch.float64 if real else torch.int64


@translates(operator.truediv)
def _quotient(t: Translation, node: fx.Node, left: Number, right: Number) -> Size:
    names = [t.operand(each, torch.float64) for each in (left, right)]
    return Size(t.emit("Div", *names), torch.float64)


@translates(torch.sym_float)
def _fraction(t: Translation, node: fx.Node, value: Number) -> Size:
    return Size(t.operand(value, torch.float64), torch.float64)


_WHOLE = {math.trunc: "", math.floor: "Floor", math.ceil: "Ceil"}


@translates(*_WHOLE)
def _rounded(t: Translation, node: fx.Node, value: Number) -> Size:
    name, op = t.operand(value, torch.float64), _WHOLE[node.target]
    return Size(t.emit("Cast", t.emit(op, name) if op else name, to=ONNX_TYPES[torch.int64]))


@translates(operator.mod)
def _remainder(t: Translation, node: fx.Node, left: int | Size, right: int | Size) -> Size:
    return Size(t.emit("Mod", t.operand(left, torch.int64), t.operand(right, torch.int64)))


@translates(operator.neg)
def _negative(t: Translation, node: fx.Node, value: Number) -> Size:
    dtype = kind_of(value)
    return Size(t.emit("Neg", t.operand(value, dtype)), dtype)


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
def _power(t: Translation, node: fx.Node, value: Number, exponent: Number) -> Size:
    dtype = kind_of(value, exponent)
    return Size(t.emit("Pow", t.operand(value, dtype), t.operand(exponent, dtype)), dtype)


@translates(torch.sym_sum)
def _total(t: Translation, node: fx.Node, values: Sequence[int | Size]) -> Size:
    return Size(t.emit("ReduceSum", t.shape(values), keepdims=0))
