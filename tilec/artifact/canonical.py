"""Canonical JSON: exactly one text for a value. Keys are sorted; a list or object that fits on a line is not broken.

In the text for people, keys of bulk come last: decisions are read before the expressions, types and constants that they
are about.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

WIDTH = 140

BULK = ("prepared", "nodes", "tensors", "files", "constants")
"""Keys behind all others of a broken object, in this order."""

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


def compact(value: Json) -> str:
    """The shortest canonical text of `value`, used for digests.

    Raises TypeError or ValueError for a value without a JSON form (NaN and infinity included): an error of the caller.
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def pretty(value: Json) -> str:
    """The canonical text for people: a list or object is broken over lines only when it exceeds the width.

    Indentation is one space, so that graph and plan of a thousand-node model stay small; ends in a newline.
    """
    return _render(value, 0, 0) + "\n"


def _render(value: Json, indent: int, used: int) -> str:
    """`value` as text that starts `used` characters into a line at depth `indent`."""
    line = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    if used + len(line) <= WIDTH or not isinstance(value, list | tuple | dict) or not value:
        return line
    inner = indent + 1
    pad = " " * inner
    if isinstance(value, dict):
        opening, closing = "{", "}"
        keys = sorted(value, key=_place)
        heads = [json.dumps(key, ensure_ascii=False) + ": " for key in keys]
        parts = [
            pad + head + _render(value[key], inner, inner + len(head) + 1)
            for head, key in zip(heads, keys, strict=True)
        ]
    else:
        opening, closing = "[", "]"
        if all(not isinstance(item, list | tuple | dict) for item in value):
            parts = _filled([json.dumps(item, ensure_ascii=False, allow_nan=False) for item in value], pad)
        else:
            parts = [pad + _render(item, inner, inner + 1) for item in value]
    return opening + "\n" + ",\n".join(parts) + "\n" + " " * indent + closing


def _place(key: str) -> tuple[int, str]:
    """Sort key of a key of a broken object."""
    return (BULK.index(key) + 1 if key in BULK else 0), key


def _filled(items: list[str], pad: str) -> list[str]:
    """Scalars packed onto lines like words of a paragraph."""
    lines: list[str] = []
    line = ""
    for item in items:
        if line and len(pad) + len(line) + 3 + len(item) > WIDTH:
            lines.append(pad + line)
            line = item
        else:
            line = f"{line}, {item}" if line else item
    return [*lines, pad + line]
