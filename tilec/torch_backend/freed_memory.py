"""Memory that was freed and that the allocator of C keeps: weights are copied while a graph is compiled."""

from __future__ import annotations

import ctypes
from contextlib import suppress

WORTH = 1 << 20
"""Bytes of weights whose copies are worth the milliseconds that it takes to give them back."""


def give_back() -> None:
    """Return what is free to the system, where the allocator can (glibc's)."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
