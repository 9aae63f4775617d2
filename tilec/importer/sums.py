"""Accumulation types: half precision is summed in single, since it would overflow where the result does not."""

from __future__ import annotations


def summed(ttype: str) -> str:
    """The type in which elements of a type are summed."""
    return "f32" if ttype in ("f16", "bf16") else ttype


def wide(text: str, ttype: str) -> str:
    """A body cast to the type in which it is summed."""
    return text if summed(ttype) == ttype else f"{summed(ttype)}({text})"
