"""What a name stands for while a model is imported: a tensor, a sequence, an optional, or an absent input."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.importer.value import Value


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """A sequence of tensors whose length is known at import; `ttype` is None when no element has said it yet."""

    held: tuple[Value, ...]
    ttype: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """An optional: what it holds, None when it is empty."""

    held: Value | Items | None = None


Held = Value | Items | Maybe | None
"""None is an optional input that a call leaves out."""
