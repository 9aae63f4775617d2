"""Symbolic shapes: comparison and reshaping of extents that are integer expressions of symbols.

Equality, divisibility and products of extents are decided for all values of the symbols (shape constraints as in
BladeDISC).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tilec.importer.formula import formula
from tilec.ir.algebra import bounds_of, equal, simplify, simplify_scalar
from tilec.ir.expr import Binary, Const, Expr, Var, constant_value, variables
from tilec.ir.size_facts import divides
from tilec.ir.text import text_of


class ShapeError(Exception):
    """Shapes that do not fit each other."""


class UndecidedError(Exception):
    """Whether shapes fit depends on symbols; `symbols` are those to bind."""

    def __init__(self, message: str, symbols: Sequence[str]) -> None:
        super().__init__(message)
        self.symbols = tuple(symbols)


def shape_text(shape: Sequence[Expr]) -> str:
    """A shape as text for messages: `[batch, 768]`."""
    return f"[{', '.join(text_of(extent) for extent in shape)}]"


def symbols_of(*shapes: Sequence[Expr]) -> tuple[str, ...]:
    """The symbols of shapes, sorted."""
    return tuple(sorted({name for shape in shapes for extent in shape for name in variables(extent)}))


def size_of(shape: Sequence[Expr]) -> Expr:
    """Number of elements."""
    total: Expr = Const(1)
    for extent in shape:
        total = simplify(Binary("*", total, extent))
    return total


class Sizes(Protocol):
    """What is known of symbolic sizes, and what may be assumed of them."""

    def same(self, a: Expr, b: Expr) -> bool | None:
        """Whether two extents are equal for all sizes (True), for none (False), or for some (None)."""

    def decided(self, condition: Expr) -> bool | None:
        """Whether a condition holds for all sizes (True), for none (False), or for some (None)."""

    def is_given(self, symbol: str) -> bool:
        """Whether a symbol is a size that inputs have on their own."""

    def assume(self, condition: Expr, message: str) -> None:
        """Go on as if a condition holds. Raises ShapeError where it never does, UndecidedError where it may not be
        assumed."""

    def demand(self, condition: Expr, message: str) -> None:
        """Record a condition that every valid run fulfils. Raises ShapeError where it never holds."""

    def replaces(self, extent: Expr, copied: Expr) -> None:
        """Demand that a computed extent of 0, for which Reshape copies another one, copies 0."""


class Proven:
    """Sizes of which nothing is known and nothing may be assumed."""

    def same(self, a: Expr, b: Expr) -> bool | None:
        """Whether two extents are equal for all sizes (True), for none (False), or for some (None)."""
        return same(a, b)

    def decided(self, condition: Expr) -> bool | None:
        """Whether a condition holds for all sizes (True), for none (False), or for some (None)."""
        plain = simplify_scalar(condition)
        return bool(plain.value) if isinstance(plain, Const) else None

    def is_given(self, symbol: str) -> bool:
        """Whether a symbol is a size that inputs have on their own."""
        return bool(symbol)

    def assume(self, condition: Expr, message: str) -> None:
        """Raises UndecidedError."""
        raise UndecidedError(f"{message}: whether {text_of(condition)} depends on the sizes", _names(condition))

    def demand(self, condition: Expr, message: str) -> None:
        """Valid runs fulfil it."""

    def replaces(self, extent: Expr, copied: Expr) -> None:
        """Valid runs fulfil it."""


PROVEN = Proven()


def _names(condition: Expr) -> tuple[str, ...]:
    return tuple(sorted(variables(condition)))


def same(a: Expr, b: Expr) -> bool | None:
    """Whether two extents are equal for all values of the symbols (True), for none (False), or for some (None)."""
    if equal(a, b):
        return True
    low, high = bounds_of(Binary("-", a, b))
    return False if (low is not None and low > 0) or (high is not None and high < 0) else None


def require_same(a: Expr, b: Expr, what: str, sizes: Sizes = PROVEN) -> None:
    """Raise ShapeError when two extents differ; where that depends on symbols, they are assumed to be equal."""
    match sizes.same(a, b):
        case True:
            return
        case False:
            raise ShapeError(f"{what}: {text_of(a)} and {text_of(b)} differ")
        case None:
            sizes.assume(Binary("==", a, b), what)


def solve_reshape(
    shape: Sequence[Expr], target: Sequence[Expr], zero_copies: bool, sizes: Sizes = PROVEN
) -> tuple[Expr, ...]:
    """The shape that Reshape computes: 0 copies an extent (if `zero_copies`), one -1 is solved for; that its quotient
    is exact is assumed where it depends on symbols.

    Raises ShapeError and UndecidedError.
    """
    wanted: list[Expr | None] = []
    copied: set[int] = set()
    for dimension, extent in enumerate(target):
        if extent == Const(0) and zero_copies:
            if dimension >= len(shape):
                raise ShapeError(f"extent 0 at dimension {dimension} copies nothing of {shape_text(shape)}")
            wanted.append(shape[dimension])
            copied.add(dimension)
        elif extent == Const(-1):
            wanted.append(None)
        else:
            low = bounds_of(extent)[0]
            if isinstance(extent, Const) and low is not None and low < 0:
                raise ShapeError(f"a negative extent: {text_of(extent)}")
            if zero_copies and not isinstance(extent, Const):
                sizes.replaces(extent, shape[dimension] if dimension < len(shape) else Const(1))
            wanted.append(extent)
    if wanted.count(None) > 1:
        raise ShapeError("more than one extent is -1")
    given = [w for w in wanted if w is not None]
    if None not in wanted and size_of(shape) == size_of(given) == Const(0):
        return tuple(given)
    rest = [w for dimension, w in enumerate(wanted) if w is not None and dimension not in copied]
    left, right = _cancelled([e for dimension, e in enumerate(shape) if dimension not in copied], rest)
    have, known = size_of(left), size_of(right)
    described = f"{shape_text(shape)} cannot become {shape_text(target)}"
    if None not in wanted:
        alike = sizes.same(have, known)
        if alike is False:
            total, wanted_total = text_of(size_of(shape)), text_of(size_of(given))
            raise ShapeError(f"{described}: {total} and {wanted_total} differ")
        if not alike:
            sizes.assume(Binary("==", have, known), described)
        return tuple(given)
    met = _meeting(shape, wanted)
    if met > 1 and not sizes.same(Binary("*", Binary("//", have, known), known), have):
        for extent, other in zip(shape[:met], wanted[:met], strict=True):
            if other is not None and other != extent:
                sizes.assume(Binary("==", extent, other), described)
        return *shape[:met], *solve_reshape(shape[met:], target[met:], zero_copies, sizes)
    quotient = _exact_quotient(have, known, described, sizes)
    return tuple(quotient if w is None else w for w in wanted)


def _meeting(shape: Sequence[Expr], wanted: Sequence[Expr | None]) -> int:
    """The number of leading dimensions where symbols become symbols: a batch and its tokens, as two inputs call them.

    Several are taken as equal, as sizes that broadcast are; one alone may as well be split: `[boxes, 4]` by image.
    """
    pairs = zip(shape, wanted, strict=False)
    return next((n for n, pair in enumerate(pairs) if not all(isinstance(e, Var) for e in pair)), 0)


def _cancelled(shape: Sequence[Expr], wanted: Sequence[Expr]) -> tuple[list[Expr], list[Expr]]:
    """Both lists without their common extents."""
    left, right = list(shape), []
    for extent in wanted:
        twin = next((other for other in left if other != Const(0) and equal(other, extent)), None)
        if twin is None:
            right.append(extent)
        else:
            left.remove(twin)
    return left, right


def _exact_quotient(have: Expr, known: Expr, described: str, sizes: Sizes) -> Expr:
    if known == Const(0):
        raise ShapeError(f"{described}: the extent -1 is not determined by an empty tensor")
    quotient = simplify(Binary("//", have, known))
    if sizes.same(Binary("*", quotient, known), have):
        return quotient
    if constant_value(have) is not None and constant_value(known) is not None:
        raise ShapeError(f"{described}: {text_of(have)} elements are no multiple of {text_of(known)}")
    assume_divides(sizes, known, have, described)
    return quotient


def assume_divides(sizes: Sizes, divisor: Expr, extent: Expr, message: str) -> None:
    """Go on as if a size of 1 or more divides an extent; raises what `sizes.assume` raises."""
    sizes.assume(Binary(">=", divisor, Const(1)), message)
    sizes.assume(divides(divisor, extent), message)


def reshape_index(
    source: Sequence[Expr], target: Sequence[Expr], index: Sequence[Expr], sizes: Sizes = PROVEN
) -> tuple[Expr, ...]:
    """The index into a tensor of shape `source` of the element at `index` of its reshape to `target`.

    Dimensions are grouped into the smallest groups with equal numbers of elements, so that `[a, b, c] -> [a, b*c]`
    leaves `a` alone.
    """
    result: list[Expr] = [Const(0)] * len(source)
    if Const(0) in source:
        return tuple(result)
    inner = [d for d, extent in enumerate(source) if extent != Const(1)]
    outer = [d for d, extent in enumerate(target) if extent != Const(1)]
    while inner and outer:
        taken, covered = _group([source[d] for d in inner], [target[d] for d in outer], sizes)
        flat = _flat([target[d] for d in outer[:covered]], [index[d] for d in outer[:covered]])
        for d, i in zip(inner[:taken], _unflat([source[d] for d in inner[:taken]], flat), strict=True):
            result[d] = i
        inner, outer = inner[taken:], outer[covered:]
    return tuple(result)


def _group(source: Sequence[Expr], target: Sequence[Expr], sizes: Sizes) -> tuple[int, int]:
    """Numbers of leading extents of each list with the smallest equal product."""
    candidates = [(a, b) for a in range(1, len(source) + 1) for b in range(1, len(target) + 1)]
    for a, b in sorted(candidates, key=lambda c: (c[0] + c[1], c[0])):
        if sizes.same(size_of(source[:a]), size_of(target[:b])):
            return a, b
    return len(source), len(target)


def _flat(shape: Sequence[Expr], index: Sequence[Expr]) -> Expr:
    flat: Expr = Const(0)
    for extent, i in zip(shape, index, strict=True):
        flat = formula("flat * extent + i", flat=flat, extent=extent, i=i)
    return flat


def _unflat(shape: Sequence[Expr], flat: Expr) -> list[Expr]:
    index: list[Expr] = []
    for d, extent in enumerate(shape):
        stride = size_of(shape[d + 1 :])
        i = formula("flat // stride", flat=flat, stride=stride)
        index.append(i if d == 0 else formula("i % extent", i=i, extent=extent))
    return index
