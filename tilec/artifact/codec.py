"""Codec of frozen dataclasses to and from JSON, driven by their type annotations.

A field equal to its default is left out. A class with a text form of its own (a size) provides `to_json(self)` and a
classmethod `from_json(value)` that raises ValueError; for a type without methods, such as a union (an expression),
`register_form` registers the two functions. Members of a union of dataclasses carry a ClassVar `kind` that is written
as key "kind".
"""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Literal, TypeVar, Union

from tilec.errors import ArtifactError, did_you_mean

T = TypeVar("T")

_UNIONS = (Union, types.UnionType)

_WRITERS: dict[type, Callable[[Any], Any]] = {}
_READERS: dict[Any, Callable[[Any], Any]] = {}


def register_form(hint: Any, write: Callable[[Any], Any], read: Callable[[Any], Any]) -> None:
    """Register a JSON form for the type annotation `hint` (a class or a union of classes).

    `write` converts a value to JSON, `read` JSON to a value; it raises ValueError for invalid input.
    """
    for member in typing.get_args(hint) if typing.get_origin(hint) in _UNIONS else (hint,):
        _WRITERS[member] = write
    _READERS[hint] = read


def encode(value: Any) -> Any:
    """`value` as JSON. Raises TypeError for a class that is neither plain data nor a dataclass."""
    if value is None or isinstance(value, bool | int | float | str):
        return value.value if isinstance(value, Enum) else value
    if type(value) in _WRITERS:
        return _WRITERS[type(value)](value)
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Enum):
        return encode(value.value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: encode(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if not _is_default(field, getattr(value, field.name))
        }
        kind = getattr(type(value), "kind", None)
        return {"kind": kind, **fields} if kind is not None else fields
    if isinstance(value, Mapping):
        return {encode(key): encode(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [encode(item) for item in value]
    raise TypeError(f"no JSON form for {type(value).__name__}")


def decode(cls: type[T], data: Any, place: str = "", path: str = "") -> T:
    """An instance of dataclass `cls` from JSON; `place` names the file, `path` the position of `data` in it.

    Raises ArtifactError with that path for a wrong type, an unknown key or a missing one.
    """
    where = _where(place, path)
    if not isinstance(data, dict):
        raise ArtifactError(f"expected an object, found {_describe(data)}", where)
    data = {key: item for key, item in data.items() if not (key == "kind" and hasattr(cls, "kind"))}
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    for key in data:
        if key not in fields:
            near = did_you_mean(key, fields)
            raise ArtifactError(f"unknown key {key!r}", where, f"Did you mean {near!r}?" if near else None)
    hints = _hints(typing.cast(Any, cls))
    values = {}
    for name, field in fields.items():
        if name in data:
            values[name] = _decode(hints[name], data[name], place, f"{path}.{name}" if path else name)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ArtifactError(f"key {name!r} is missing", where)
    try:
        return cls(**values)
    except ValueError as error:
        raise ArtifactError(str(error), where) from error


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _is_default(field: "dataclasses.Field[Any]", value: Any) -> bool:
    if field.default_factory is not dataclasses.MISSING:
        return bool(value == field.default_factory())
    return field.default is not dataclasses.MISSING and type(value) is type(field.default) and value == field.default


def _decode(hint: Any, data: Any, place: str, path: str) -> Any:
    if hint in _READERS:
        try:
            return _READERS[hint](data)
        except ValueError as error:
            raise ArtifactError(str(error), _where(place, path)) from error
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        return _decode_union(arguments, data, place, path)
    if origin is Literal and data in arguments:
        return data
    if origin is tuple and isinstance(data, list):
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_decode(arguments[0], item, place, f"{path}[{i}]") for i, item in enumerate(data))
        if len(arguments) == len(data):
            pairs = zip(arguments, data, strict=True)
            return tuple(_decode(each, item, place, f"{path}[{i}]") for i, (each, item) in enumerate(pairs))
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(data, dict):
        key, item = arguments
        return {_decode(key, k, place, f"{path}.{k}"): _decode(item, v, place, f"{path}.{k}") for k, v in data.items()}
    if isinstance(hint, type):
        if hasattr(hint, "from_json"):
            try:
                return hint.from_json(data)
            except (ValueError, TypeError) as error:
                raise ArtifactError(str(error), _where(place, path)) from error
        if issubclass(hint, Enum) and data in [member.value for member in hint]:
            return hint(data)
        if dataclasses.is_dataclass(hint):
            return decode(hint, data, place, path)
        if hint is float and isinstance(data, int) and not isinstance(data, bool):
            return float(data)
        if type(data) is hint:
            return data
    raise ArtifactError(f"expected {_name(hint)}, found {_describe(data)}", _where(place, path))


def _decode_union(members: tuple[Any, ...], data: Any, place: str, path: str) -> Any:
    """The first member that accepts `data`; an object with a kind is decoded by the member of that kind, one without by
    the only class without. An optional value of a type with a registered form is null or in that form."""
    if type(None) in members:
        value: Any = Union.__getitem__(tuple(member for member in members if member is not type(None)))
        if value in _READERS:
            return None if data is None else _decode(value, data, place, path)
    if isinstance(data, dict) and "kind" in data:
        for member in members:
            if getattr(member, "kind", None) == data["kind"]:
                return _decode(member, data, place, path)
    plain = [member for member in members if dataclasses.is_dataclass(member) and not hasattr(member, "kind")]
    if isinstance(data, dict) and len(plain) == 1:
        return _decode(plain[0], data, place, path)
    for member in sorted(members, key=lambda member: member is not type(data)):
        try:
            return _decode(member, data, place, path)
        except ArtifactError:
            continue
    names = " or ".join(_name(member) for member in members)
    raise ArtifactError(f"expected {names}, found {_describe(data)}", _where(place, path))


def _where(place: str, path: str) -> str | None:
    return ": ".join(part for part in (place, path) if part) or None


def _name(hint: Any) -> str:
    if typing.get_origin(hint) is Literal:
        return " or ".join(repr(value) for value in typing.get_args(hint))
    return "null" if hint is type(None) else getattr(hint, "__name__", str(hint))


def _describe(data: Any) -> str:
    if isinstance(data, list | dict):
        return "a list" if isinstance(data, list) else "an object"
    return "null" if data is None else repr(data)
