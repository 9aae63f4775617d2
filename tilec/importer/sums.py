"""The type in which a sum on the way to a result is kept: that of f16 would overflow where the result does not."""

from __future__ import annotations


def summed(ttype: str) -> str:
    """The type in which elements of a type are summed: half precision in single."""
    return "f32" if ttype in ("f16", "bf16") else ttype


def wide(text: str, ttype: str) -> str:
    """A body over elements of a type as it is summed."""
    return text if summed(ttype) == ttype else f"{summed(ttype)}({text})"
