"""Names: unique, readable identifiers for a model's tensors, symbols and nodes."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable
from itertools import count

from tilec.ir.dots import DOTS, WORD
from tilec.ir.expr import NEUTRAL
from tilec.ir.scalars import BITCASTS, FUNCTIONS
from tilec.ir.types import TTYPES

LETTERS = ("i", "j", "k", "l", "m", "n", "o", "p", "q", "i9", "i10", "i11", "i12", "i13")
"""Iterators over the dimensions of a tensor."""

REDUCED = ("r", "s", "t", "u", "v", "w", "x", "y", "z")
"""Iterators of reductions."""

_RESERVED = frozenset({"inf", "nan", "where", *NEUTRAL, *FUNCTIONS, *BITCASTS, *TTYPES, WORD, *DOTS})


def identifier(name: str, fallback: str) -> str:
    """`/encoder/layer.0/MatMul_output_0` -> `encoder_layer_0_MatMul`; a leading digit is preceded by `fallback`.

    Never a Python keyword or a word of the expression language.
    """
    word = re.sub(r"_output_0$", "", name)
    word = re.sub(r"[^0-9A-Za-z]+", "_", word).strip("_")
    if not word or word[0].isdigit():
        word = f"{fallback}_{word}" if word else fallback
    return f"{word}_" if keyword.iskeyword(word) or word in _RESERVED else word


class Names:
    """A generator of unique names, none of which is `reserved`."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._used = dict.fromkeys(reserved, 1)

    def take(self, wanted: str) -> str:
        """`wanted`, or `wanted_2`, `wanted_3` ... when it is taken."""
        if wanted not in self._used:
            self._used[wanted] = 1
            return wanted
        while True:
            self._used[wanted] += 1
            name = f"{wanted}_{self._used[wanted]}"
            if name not in self._used:
                self._used[name] = 1
                return name

    def numbered(self, wanted: str) -> str:
        """`wanted_1`, or with the first number that makes it new."""
        name = next(name for number in count(1) if (name := f"{wanted}_{number}") not in self._used)
        self._used[name] = 1
        return name
