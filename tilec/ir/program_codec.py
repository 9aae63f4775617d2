"""JSON form of tile programs: expressions as text, a statement as an object whose key `do` names it."""

from __future__ import annotations

import dataclasses
from math import inf, isfinite, nan
from typing import Any

import tilec.ir.codec  # noqa: F401  (the forms of expressions)
from tilec.artifact import decode, encode, register_form
from tilec.errors import did_you_mean
from tilec.ir.program import Allocate, Barrier, ComputeTile, Fill, LoadTiles, Loop, Program, Statement, StoreTiles, Wait

_CLASSES: dict[str, type] = {
    "allocate": Allocate,
    "fill": Fill,
    "load": LoadTiles,
    "wait": Wait,
    "compute": ComputeTile,
    "store": StoreTiles,
    "barrier": Barrier,
    "for": Loop,
}
_NAMES = {cls: name for name, cls in _CLASSES.items()}
_SPECIAL = {"inf": inf, "-inf": -inf, "nan": nan}
_NUMBERS = frozenset({"value", "fill"})
_RENAMED = {"kind": "run"}  # the artifact codec uses `kind` for the class of a union


def _write(statement: Statement) -> dict[str, Any]:
    data: dict[str, Any] = {"do": _NAMES[type(statement)]}
    for field in dataclasses.fields(statement):
        value = getattr(statement, field.name)
        if field.default is not dataclasses.MISSING and type(value) is type(field.default) and value == field.default:
            continue
        special = field.name in _NUMBERS and isinstance(value, float) and not isfinite(value)
        data[_RENAMED.get(field.name, field.name)] = str(value) if special else encode(value)
    return data


def _read(data: Any) -> Statement:
    match data:
        case {"do": str() as name, **rest} if name in _CLASSES:
            pass
        case {"do": str() as name}:
            near = did_you_mean(name, _CLASSES)
            raise ValueError(f"unknown statement {name!r}" + (f", did you mean {near!r}?" if near else ""))
        case _:
            raise ValueError("a statement is an object whose key `do` names it")
    fields = {
        str(key): _SPECIAL[value] if key in _NUMBERS and isinstance(value, str) and value in _SPECIAL else value
        for key, value in rest.items()
    }
    if name != "for":
        return decode(_CLASSES[name], fields)
    run = fields.pop(_RENAMED["kind"], "serial")
    if run not in ("serial", "spread"):
        raise ValueError(f"a loop runs serial or spread, not {run!r}")
    return dataclasses.replace(decode(Loop, fields), kind=run)


register_form(Statement, _write, _read)


def program_to_json(program: Program) -> dict[str, Any]:
    """A program as plain JSON data; `program_from_json` gives an equal program back."""
    return dict(encode(program))


def program_from_json(data: Any, place: str = "") -> Program:
    """Decode a program; `place` names the file. Raises ArtifactError with the path of the invalid value."""
    return decode(Program, data, place)
