"""Values of names during import: tensors, sequences, optionals, absent inputs, and values that only onnxruntime has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilec.importer.onnx_types import extents_text, tensor_text, type_text
from tilec.importer.value import Value


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """A sequence of tensors whose length is known at import; `ttype` is None while no element determines it."""

    held: tuple[Value, ...]
    ttype: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """An optional: its element, None when it is empty."""

    held: Value | Items | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """A value that no tensor expression can read: `name` in the graph and its ONNX type."""

    name: str
    type: Any

    @property
    def described(self) -> str:
        """The reason why it cannot be read, a clause that follows its name."""
        text, extents = type_text(self.type), extents_text(self.type)
        if not text:
            return "whose type is not known before it is computed"
        if self.type.WhichOneof("value") == "tensor_type" and extents is None:
            return "whose rank is not known"
        if extents is not None and not all(isinstance(extent, int) for extent in extents):
            return "whose shape depends on the data"
        return f"which is a {text}"


NamedValue = Value | Items | Maybe | Outside | None
"""None is an optional input that a call leaves out."""


def type_of_value(value: NamedValue) -> str:
    """The ONNX type of a value as text; empty where it is not known."""
    match value:
        case Value():
            return tensor_text(value.ttype)
        case Items():
            return "" if value.ttype is None else f"seq({tensor_text(value.ttype)})"
        case Maybe():
            inner = type_of_value(value.held)
            return f"optional({inner})" if inner else ""
        case Outside():
            return type_text(value.type)
        case None:
            return ""
