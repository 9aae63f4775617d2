"""The table of operators: functions that try to add nodes of a family to a sketch, with their weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from onnx.defs import get_schema

from fuzz.sketch import ALL, NothingFits, Sketch

Drawing = Callable[[Sketch], object]

TABLE: list[tuple[float, Drawing]] = []

_ONNX = {
    "tensor(double)": "f64",
    "tensor(float)": "f32",
    "tensor(float16)": "f16",
    "tensor(bfloat16)": "bf16",
    **{f"tensor(int{bits})": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"tensor(uint{bits})": f"u{bits}" for bits in (8, 16, 32, 64)},
    "tensor(bool)": "bool",
}


def draws(weight: float) -> Callable[[Drawing], Drawing]:
    """Register a family; a weight of 1 is usual."""

    def register(drawing: Drawing) -> Drawing:
        TABLE.append((weight, drawing))
        return drawing

    return register


@cache
def types_of(kind: str, opset: int, operand: int = 0) -> tuple[str, ...]:
    """The native types that an operand of an operator may have, f32 more often than the others.

    Raises NothingFits where the opset lacks the operator.
    """
    if since(kind) > opset:
        raise NothingFits
    schema = get_schema(kind, opset)
    known = {_ONNX[t] for t in schema.inputs[operand].types if t in _ONNX}
    return tuple(t for t in ALL if t in known) + ("f32",) * 4 * ("f32" in known)


@cache
def since(kind: str) -> int:
    """The first opset that has an operator."""
    schema = get_schema(kind)
    while schema.since_version > 1:
        try:
            schema = get_schema(kind, schema.since_version - 1)
        except Exception:  # the class differs between onnx's versions
            break
    return int(schema.since_version)
