"""ONNX types of values: as text, and as shape and tType where compiled code can represent them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx

from tilec.importer.element_types import ELEMENT_TYPES, element_type_name
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr, constant_value, variables
from tilec.ir.size_facts import SizeFacts
from tilec.ir.text import parse_expr, text_of
from tilec.ir.types import TTYPES

_CODES = {ttype: code for code, ttype in ELEMENT_TYPES.items()}

ELEMENT_NAMES = {f"tensor({element_type_name(code).lower()})": code for code in ELEMENT_TYPES}
"""The type of a tensor as text -> its element type, for those with a tType."""


def tensor_text(ttype: str) -> str:
    """The type of a tensor of a tType as text."""
    return f"tensor({element_type_name(_CODES[ttype]).lower()})"


def element_code(ttype: str) -> int:
    """ONNX's number of an element type."""
    return _CODES[ttype]


def type_text(proto: Any) -> str:
    """`tensor(float)`, `seq(tensor(string))`, `optional(...)`, `map(int64, ...)`; empty when nothing is known."""
    kind = proto.WhichOneof("value")
    match kind:
        case "tensor_type" | "sparse_tensor_type":
            tensor = getattr(proto, kind)
            prefix = "sparse_tensor" if kind == "sparse_tensor_type" else "tensor"
            return f"{prefix}({element_type_name(tensor.elem_type).lower()})" if tensor.elem_type else ""
        case "sequence_type":
            return f"seq({type_text(proto.sequence_type.elem_type)})"
        case "optional_type":
            return f"optional({type_text(proto.optional_type.elem_type)})"
        case "map_type":
            key = element_type_name(proto.map_type.key_type).lower()
            return f"map({key},{type_text(proto.map_type.value_type)})"
        case _:
            return ""


def extents_text(proto: Any) -> tuple[int | str | None, ...] | None:
    """The extents of a tensor type as far as they are named; None for an unknown rank or another type."""
    if proto.WhichOneof("value") != "tensor_type" or not proto.tensor_type.HasField("shape"):
        return None
    return tuple(_extent(dim) for dim in proto.tensor_type.shape.dim)


def _extent(dim: Any) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return dim.dim_param or None


def tensor_type(ttype: str, shape: Sequence[Expr]) -> Any:
    """The TypeProto of a tensor; symbolic extents are dim_params of their text."""
    extents = [text_of(extent) if (size := constant_value(extent)) is None else size for extent in shape]
    return onnx.helper.make_tensor_type_proto(_CODES[ttype], extents)


def tensor_of(proto: Any, facts: SizeFacts) -> tuple[str, tuple[Expr | None, ...]] | None:
    """tType and shape of a tensor of a plain type, None for an extent that is no integer and no expression of the
    symbols; None for an unknown rank or another type."""
    extents = extents_text(proto)
    ttype = ELEMENT_TYPES.get(proto.tensor_type.elem_type, "") if extents is not None else ""
    if extents is None or not ttype or TTYPES[ttype].coded:
        return None
    return ttype, tuple(_expression(extent, facts) for extent in extents)


def _expression(extent: int | str | None, facts: SizeFacts) -> Expr | None:
    if isinstance(extent, int):
        return Const(extent)
    try:
        expr = parse_expr(extent or "")
    except ValueError:
        return None
    reduced = facts.reduced(expr)
    return simplify(reduced) if variables(reduced) <= set(facts.symbols) else None
