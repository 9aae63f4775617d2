"""Codes packed into words along the last dimension, the first in the lowest bits (Ladder, 3.2; L20)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.ir.types import TTYPES


def word_type(ttype: str) -> str:
    """The plain type of the words that hold codes of a type."""
    return f"u{TTYPES[ttype].word_bits}"


def pack_codes(codes: NDArray[Any], ttype: str) -> NDArray[Any]:
    """Codes `[..., n]` as words `[..., ceil(n / per_word)]`; missing codes are 0."""
    t = TTYPES[ttype]
    dtype = np.dtype(f"<u{t.word_bits // 8}")
    if codes.ndim == 0 or t.per_word == 1:
        return codes.astype(dtype)
    padding = [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % t.per_word)]
    padded = np.pad(codes.astype(dtype), padding)
    split = padded.reshape(*padded.shape[:-1], -1, t.per_word)
    shifts = np.arange(t.per_word, dtype=dtype) * dtype.type(t.bits)
    return np.asarray(np.bitwise_or.reduce(split << shifts, axis=-1, dtype=dtype))


def unpack_codes(words: NDArray[Any], ttype: str, inner: int) -> NDArray[Any]:
    """Codes `[..., inner]` of words `[..., ceil(inner / per_word)]`."""
    t = TTYPES[ttype]
    if words.ndim == 0 or t.per_word == 1:
        return words
    shifts = np.arange(t.per_word, dtype=words.dtype) * words.dtype.type(t.bits)
    split = (words[..., None] >> shifts) & words.dtype.type((1 << t.bits) - 1)
    return np.asarray(split.reshape(*words.shape[:-1], -1)[..., :inner])
