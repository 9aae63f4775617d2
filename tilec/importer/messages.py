"""Messages of a model file, as far as they tell of inputs, outputs and files: read without onnx, and without the rest.

They have the fields, `HasField` and `WhichOneof` that onnx's own have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilec.wire import BYTES, VARINT, Buffer, Field, WireError, fields

NUMBER, TEXT = "number", "text"


@dataclass(frozen=True, slots=True)
class Kind:
    """A field: its name, NUMBER, TEXT or the schema of a message, and whether it is a list."""

    name: str
    holds: str | Schema
    many: bool = False


Schema = dict[int, Kind]
"""The fields of a message by number; others are passed over."""

_DIMENSION: Schema = {1: Kind("dim_value", NUMBER), 2: Kind("dim_param", TEXT)}
_SHAPE: Schema = {1: Kind("dim", _DIMENSION, many=True)}
_TENSOR_TYPE: Schema = {1: Kind("elem_type", NUMBER), 2: Kind("shape", _SHAPE)}
_TYPE: Schema = {}
_SEQUENCE: Schema = {1: Kind("elem_type", _TYPE)}
_MAP: Schema = {1: Kind("key_type", NUMBER), 2: Kind("value_type", _TYPE)}
_TYPE |= {
    1: Kind("tensor_type", _TENSOR_TYPE),
    4: Kind("sequence_type", _SEQUENCE),
    5: Kind("map_type", _MAP),
    7: Kind("opaque_type", {}),
    8: Kind("sparse_tensor_type", _TENSOR_TYPE),
    9: Kind("optional_type", _SEQUENCE),
}
_PORT: Schema = {1: Kind("name", TEXT), 2: Kind("type", _TYPE)}
_ENTRY: Schema = {1: Kind("key", TEXT), 2: Kind("value", TEXT)}
_TENSOR: Schema = {
    8: Kind("name", TEXT),
    13: Kind("external_data", _ENTRY, many=True),
    14: Kind("data_location", NUMBER),
}
_SPARSE: Schema = {1: Kind("values", _TENSOR)}
_GRAPH: Schema = {
    2: Kind("name", TEXT),
    5: Kind("initializer", _TENSOR, many=True),
    10: Kind("doc_string", TEXT),
    11: Kind("input", _PORT, many=True),
    12: Kind("output", _PORT, many=True),
    15: Kind("sparse_initializer", _SPARSE, many=True),
}
_NODE: Schema = {1: Kind("input", TEXT, many=True), 4: Kind("op_type", TEXT), 7: Kind("domain", TEXT)}
NODES: Schema = {7: Kind("graph", {1: Kind("node", _NODE, many=True)})}
"""Of a model its nodes alone."""

_OPSET: Schema = {1: Kind("domain", TEXT), 2: Kind("version", NUMBER)}
MODEL: Schema = {
    1: Kind("ir_version", NUMBER),
    2: Kind("producer_name", TEXT),
    4: Kind("domain", TEXT),
    5: Kind("model_version", NUMBER),
    6: Kind("doc_string", TEXT),
    7: Kind("graph", _GRAPH),
    8: Kind("opset_import", _OPSET, many=True),
    14: Kind("metadata_props", _ENTRY, many=True),
}


class Message:
    """A message of a schema; fields that are not there have protobuf's defaults."""

    def __init__(self, schema: Schema, values: Mapping[str, Any]) -> None:
        self._schema = schema
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        for kind in self._schema.values():
            if kind.name == name:
                return () if kind.many else _absent(kind.holds)
        raise AttributeError(name)

    def HasField(self, name: str) -> bool:  # noqa: N802
        """Whether a field that is no list is there."""
        return name in self._values

    def WhichOneof(self, _group: str) -> str | None:  # noqa: N802
        """The field of a message that has one of its fields."""
        return next(iter(self._values), None)


def read_message(schema: Schema, data: Buffer, start: int, end: int) -> Message:
    """The message in data[start:end]. Raises WireError, also for forms that are sound and that nobody writes."""
    values: dict[str, Any] = {}
    for field in fields(data, start, end):
        kind = schema.get(field.number)
        if kind is None:
            continue
        value = _value(kind.holds, data, field)
        if kind.many:
            values.setdefault(kind.name, []).append(value)
        elif kind.name in values:
            raise WireError(f"the field at byte {field.begin} is there twice")
        else:
            values[kind.name] = value
    return Message(schema, values)


def _absent(holds: str | Schema) -> Any:
    if isinstance(holds, str):
        return 0 if holds == NUMBER else ""
    return Message(holds, {})


def _value(holds: str | Schema, data: Buffer, field: Field) -> Any:
    if field.wire != (VARINT if holds == NUMBER else BYTES):
        raise WireError(f"the field at byte {field.begin} has another type")
    if holds == NUMBER:
        return field.value - (1 << 64) if field.value >> 63 else field.value
    if holds == TEXT:
        raw = data[field.start : field.end]
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw
    assert not isinstance(holds, str)
    return read_message(holds, data, field.start, field.end)
