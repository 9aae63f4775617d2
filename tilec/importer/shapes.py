"""Symbolic shapes: comparison, broadcasting and reshaping of extents that are integer expressions of symbols.

Equality, divisibility and products of extents are decided for all values of the symbols (shape constraints as in
BladeDISC).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.formula import formula
from tilec.ir.algebra import bounds_of, equal, simplify
from tilec.ir.expr import Binary, Call, Const, Expr, constant_value, variables
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


def same(a: Expr, b: Expr) -> bool | None:
    """Whether two extents are equal for all values of the symbols (True), for none (False), or for some (None)."""
    if equal(a, b):
        return True
    low, high = bounds_of(Binary("-", a, b))
    return False if (low is not None and low > 0) or (high is not None and high < 0) else None


def require_same(a: Expr, b: Expr, what: str) -> None:
    """Raise ShapeError when two extents differ, UndecidedError when that depends on symbols."""
    match same(a, b):
        case True:
            return
        case False:
            raise ShapeError(f"{what}: {text_of(a)} and {text_of(b)} differ")
        case None:
            message = f"{what}: whether {text_of(a)} and {text_of(b)} are equal depends on the sizes"
            raise UndecidedError(message, symbols_of((a, b)))


def broadcast(*shapes: Sequence[Expr]) -> tuple[Expr, ...]:
    """The common shape of operands, aligned at the last dimension. Raises ShapeError and UndecidedError."""
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Expr] = []
    for dimension in range(-rank, 0):
        extent: Expr = Const(1)
        for shape in shapes:
            if len(shape) >= -dimension:
                extent = _join(extent, shape[dimension], shapes)
        result.append(extent)
    return tuple(result)


def _join(a: Expr, b: Expr, shapes: Sequence[Sequence[Expr]]) -> Expr:
    if b == Const(1) or equal(a, b):
        return a
    if a == Const(1):
        return b
    for longer, shorter in ((a, b), (b, a)):
        if isinstance(shorter, Call) and shorter.fn == "minimum" and longer in shorter.args:
            # A slice of a table by a size: valid sizes are at most the extent of the table.
            return longer
    described = " and ".join(shape_text(shape) for shape in shapes)
    if same(a, b) is False and same(a, Const(1)) is False and same(b, Const(1)) is False:
        raise ShapeError(f"shapes {described} cannot be broadcast: {text_of(a)} meets {text_of(b)}")
    message = f"whether shapes {described} broadcast depends on the sizes: {text_of(a)} meets {text_of(b)}"
    raise UndecidedError(message, symbols_of((a, b)))


def solve_reshape(shape: Sequence[Expr], target: Sequence[Expr], zero_copies: bool) -> tuple[Expr, ...]:
    """The shape that Reshape computes: 0 copies an extent (if `zero_copies`), one -1 is solved for.

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
            wanted.append(extent)
    if wanted.count(None) > 1:
        raise ShapeError("more than one extent is -1")
    given = [w for w in wanted if w is not None]
    rest = [w for dimension, w in enumerate(wanted) if w is not None and dimension not in copied]
    left, right = _cancelled([e for dimension, e in enumerate(shape) if dimension not in copied], rest)
    have, known = size_of(left), size_of(right)
    described = f"{shape_text(shape)} cannot become {shape_text(target)}"
    if None not in wanted:
        if not equal(have, known):
            require_same(size_of(shape), size_of(given), described)
        return tuple(given)
    quotient = _exact_quotient(have, known, described)
    return tuple(quotient if w is None else w for w in wanted)


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


def _exact_quotient(have: Expr, known: Expr, described: str) -> Expr:
    if known == Const(0):
        raise ShapeError(f"{described}: the extent -1 is not determined by an empty tensor")
    quotient = simplify(Binary("//", have, known))
    if equal(Binary("*", quotient, known), have):
        return quotient
    if constant_value(have) is not None and constant_value(known) is not None:
        raise ShapeError(f"{described}: {text_of(have)} elements are no multiple of {text_of(known)}")
    message = f"{described}: whether {text_of(have)} is a multiple of {text_of(known)} depends on the sizes"
    raise UndecidedError(message, symbols_of((have, known)))


def reshape_index(source: Sequence[Expr], target: Sequence[Expr], index: Sequence[Expr]) -> tuple[Expr, ...]:
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
        taken, covered = _group([source[d] for d in inner], [target[d] for d in outer])
        flat = _flat([target[d] for d in outer[:covered]], [index[d] for d in outer[:covered]])
        for d, i in zip(inner[:taken], _unflat([source[d] for d in inner[:taken]], flat), strict=True):
            result[d] = i
        inner, outer = inner[taken:], outer[covered:]
    return tuple(result)


def _group(source: Sequence[Expr], target: Sequence[Expr]) -> tuple[int, int]:
    """Numbers of leading extents of each list with the smallest equal product."""
    candidates = [(a, b) for a in range(1, len(source) + 1) for b in range(1, len(target) + 1)]
    for a, b in sorted(candidates, key=lambda c: (c[0] + c[1], c[0])):
        if equal(size_of(source[:a]), size_of(target[:b])):
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
