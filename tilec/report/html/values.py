"""Costs as plain data: integers, or text where they depend on unbound sizes."""

from __future__ import annotations

from tilec.ir.algebra import simplify
from tilec.ir.expr import Expr, constant_value
from tilec.ir.plan import Plan
from tilec.ir.text import text_of
from tilec.ir.types import tensor_bytes

Value = int | str


def plain(expr: Expr) -> Value:
    """The value of an expression, or its text."""
    size = constant_value(simplify(expr))
    return text_of(expr) if size is None else size


def tensor_facts(plan: Plan, name: str) -> tuple[str, Value]:
    """Type with shape, and bytes, of a tensor; opaque tensors have their type only."""
    tensor = plan.tensors.get(name)
    if tensor is None:
        opaque = plan.opaque.get(name)
        return (opaque.type if opaque is not None else "?"), "?"
    shape = ", ".join(text_of(extent) for extent in tensor.shape)
    return f"{tensor.ttype}[{shape}]", plain(tensor_bytes(tensor.ttype, tensor.shape))
