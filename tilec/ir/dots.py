"""Functions of words: u32 that hold several elements, which a compute unit multiplies and sums at once (L13, L21).

word(x0, x1, ...)   the bits of elements that fill a word, the first lowest
dot_u8_i8(x, w)     the sum of the products of the elements of two words; named after their types
"""

from __future__ import annotations

from dataclasses import dataclass

from tilec.ir.by_identity import by_identity
from tilec.ir.expr import Access, Call, Expr, children, walk
from tilec.ir.types import TTYPES

WORD = "word"
"""The function that joins elements."""

WORD_TTYPE = "u32"
"""Type of a word."""


@dataclass(frozen=True, slots=True)
class Dot:
    """The sum of products of the elements of two words: types of the elements, and of the products and their sum."""

    inputs: tuple[str, str]
    accumulator: str

    @property
    def name(self) -> str:
        """The function's name."""
        return "_".join(("dot", *self.inputs))

    @property
    def count(self) -> int:
        """Elements of a word."""
        return TTYPES[WORD_TTYPE].bits // TTYPES[self.inputs[0]].bits


DOTS: dict[str, Dot] = {
    dot.name: dot
    for dot in (
        Dot(("u8", "i8"), "i32"),
        Dot(("i8", "i8"), "i32"),
        Dot(("i16", "i16"), "i32"),
        Dot(("bf16", "bf16"), "f32"),
    )
}
"""Function -> its types. Sums of integers wrap."""


def dot_of(body: Expr) -> str:
    """The function of words that a body is, "" for any other body."""
    return body.fn if isinstance(body, Call) and body.fn in DOTS else ""


def dot_inside(body: Expr) -> str:
    """The function of words that a body calls, at its root or inside; "" where it calls none."""
    return next((part.fn for part in walk(body) if isinstance(part, Call) and part.fn in DOTS), "")


@by_identity(1 << 14)
def joined(body: Expr) -> frozenset[str]:
    """Tensors whose elements a body joins to words, and reads nowhere else."""
    inside = {a.tensor for part in walk(body) if _is_word(part) for a in walk(part) if isinstance(a, Access)}
    return frozenset(inside - set(_outside(body)))


def _outside(body: Expr) -> list[str]:
    if _is_word(body):
        return []
    own = [body.tensor] if isinstance(body, Access) else []
    return own + [tensor for part in children(body) for tensor in _outside(part)]


def _is_word(part: Expr) -> bool:
    return isinstance(part, Call) and part.fn == WORD
