"""Broadcasting of extents that are integer expressions of symbols (BladeDISC, shape constraints).

Where two sizes meet that inputs have on their own, each may be the other or 1, whichever a run brings: the operand of
extent 1 is repeated. A node reads it at `minimum(i, extent - 1)`, which is the iterator itself where both are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilec.importer.builder import Axis
from tilec.importer.shapes import PROVEN, ShapeError, Sizes, require_same, shape_text
from tilec.ir.algebra import bounds_of, equal, polynomial, simplify
from tilec.ir.expr import Binary, Call, Const, Expr, Var, constant_value, variables
from tilec.ir.size_facts import fits
from tilec.ir.text import text_of


def broadcast(*shapes: Sequence[Expr], sizes: Sizes = PROVEN) -> tuple[Expr, ...]:
    """The common shape of operands, aligned at the last dimension. Raises ShapeError and UndecidedError."""
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Expr] = []
    for dimension in range(-rank, 0):
        extent: Expr = Const(1)
        for shape in shapes:
            if len(shape) >= -dimension:
                extent = _join(extent, shape[dimension], shapes, sizes)
        result.append(extent)
    return tuple(result)


def require_fit(shape: Sequence[Expr], whole: Sequence[Expr], sizes: Sizes = PROVEN, what: str = "") -> None:
    """Raise ShapeError, which says `what` that is, unless a shape broadcasts to exactly another one."""
    described = what or f"{shape_text(shape)} is broadcast to {shape_text(whole)}"
    if len(shape) > len(whole):
        raise ShapeError(described)
    for extent, of_whole in zip(shape, whole[len(whole) - len(shape) :], strict=True):
        if _is_open(extent, of_whole, sizes):
            sizes.assume(fits(extent, of_whole), described)
        elif extent != Const(1) and is_single(extent) and not is_single(of_whole):
            sizes.assume(_one_at_least(extent), described)
        elif extent != Const(1):
            require_same(extent, of_whole, described, sizes)


def repeated_index(shape: Sequence[Expr], aligned: Sequence[Axis], sizes: Sizes) -> tuple[Expr, ...]:
    """The index at which a tensor of some shape is read by the axes of its broadcast."""
    return tuple(_index(extent, axis.extent, axis.var, sizes) for extent, axis in zip(shape, aligned, strict=True))


def fitted_index(extent: Expr, whole: Expr, index: Expr, sizes: Sizes, what: str) -> Expr:
    """The index at which a dimension that broadcasts to another one is read by an index of that one. Raises ShapeError
    with `what` that is."""
    require_fit((extent,), (whole,), sizes, what)
    return _index(extent, whole, index, sizes)


def settle(whole: Expr, extent: Expr, sizes: Sizes, what: str) -> bool:
    """Demand that the broadcast of some extents is one of them; whether there are others, which are it or 1 now."""
    others = [each for each in _operands(whole) if not equal(each, extent)]
    if not others or len(others) == len(tuple(_operands(whole))):
        return False
    for each in others:
        require_fit((each,), (extent,), sizes, what)
    return True


def is_single(extent: Expr) -> bool:
    """Whether a dimension has no more than one element: of its first `minimum(n, 1)`, say."""
    return extent == Const(1) or bounds_of(extent)[1] == 1


def _index(extent: Expr, whole: Expr, index: Expr, sizes: Sizes) -> Expr:
    if is_single(extent) and not is_single(whole):
        return Const(0)
    if _is_open(extent, whole, sizes):
        return Call("minimum", (index, simplify(Binary("-", extent, Const(1)))))
    return index


def _join(a: Expr, b: Expr, shapes: Sequence[Sequence[Expr]], sizes: Sizes) -> Expr:
    if b == Const(1) or equal(a, b):
        return a
    if a == Const(1):
        return b
    described = " and ".join(shape_text(shape) for shape in shapes)
    for longer, shorter in ((a, b), (b, a)):
        if is_single(shorter) and not is_single(longer):
            sizes.assume(_one_at_least(shorter), f"shapes {described} broadcast")
            return longer
    for longer, shorter in ((a, b), (b, a)):
        if isinstance(shorter, Call) and shorter.fn == "minimum" and longer in shorter.args:
            # A slice of a table by a size: valid sizes are at most the extent of the table.
            table = next(each for each in shorter.args if each != longer)
            sizes.demand(Binary("<=", longer, table), f"shapes {described} broadcast")
            return longer
    alike = sizes.same(a, b)
    if alike is False and sizes.same(a, Const(1)) is False and sizes.same(b, Const(1)) is False:
        raise ShapeError(f"shapes {described} cannot be broadcast: {text_of(a)} meets {text_of(b)}")
    met = f"shapes {described} broadcast, {text_of(a)} meets {text_of(b)}"
    if not alike and (_is_open(a, b, sizes) or _is_open(b, a, sizes)):
        return _either(a, b, met, sizes)
    if not alike:
        sizes.assume(Binary("==", a, b), met)
    return a if _simpler(a, b) else b


def _either(a: Expr, b: Expr, met: str, sizes: Sizes) -> Expr:
    """The extent where two meet of which one is the other, or 1."""
    for extent, whole in ((a, b), (b, a)):
        if extent in _operands(whole) or (_is_open(extent, whole, sizes) and sizes.decided(fits(extent, whole))):
            return whole
    both = [(extent, whole) for extent, whole in ((a, b), (b, a)) if _is_open(extent, whole, sizes)]
    if len(both) == 1:
        ((extent, whole),) = both
        sizes.assume(fits(extent, whole), met)
        return whole
    sizes.assume(Binary("or", fits(a, b), Binary("==", b, Const(1))), met)
    return Call("where", (Binary("==", a, Const(1)), b, a))


def _is_open(extent: Expr, whole: Expr, sizes: Sizes) -> bool:
    """Whether an extent may be 1 where the other one it meets is larger: it consists of sizes that inputs have on their
    own, of which the other one is not computed, unless further sizes are added that may be 0: `seq` meets
    `past + seq`."""
    if equal(extent, whole) or is_single(whole) or sizes.same(extent, Const(1)) is not None:
        return False
    own = [each.name for each in _operands(extent) if isinstance(each, Var) and sizes.is_given(each.name)]
    computed = [each for each in _operands(whole) if not isinstance(each, Var)]
    return (
        len(own) == len(tuple(_operands(extent)))
        and not any(variables(each) & set(own) and not _is_longer(each, extent, sizes) for each in computed)
        and sizes.same(extent, whole) is None
    )


def _is_longer(whole: Expr, extent: Expr, sizes: Sizes) -> bool:
    """Whether an extent is another one and sizes that inputs have on their own, which may be 0."""
    added = polynomial(Binary("-", whole, extent))
    return (
        bool(added)
        and all(
            factor > 0 and len(term) == 1 and isinstance(term[0], Var) and sizes.is_given(term[0].name)
            for term, factor in added.items()
        )
        and not variables(extent) & {symbol for term in added for each in term for symbol in variables(each)}
    )


def _operands(extent: Expr) -> Iterator[Expr]:
    """The extents whose broadcast an extent is; itself where it is none."""
    match extent:
        case Call("where", (Binary("==", size, Const(1)), yes, no)) if size == no:
            yield from _operands(yes)
            yield from _operands(no)
        case _:
            yield extent


def _one_at_least(extent: Expr) -> Expr:
    """The condition that a dimension is not empty, of a slice that what it is taken from is not."""
    if isinstance(extent, Call) and extent.fn == "minimum":
        whole = [each for each in extent.args if constant_value(each) is None]
        if len(whole) == 1 and len(extent.args) == 2:
            return Binary(">=", whole[0], Const(1))
    return Binary(">=", extent, Const(1))


def _simpler(a: Expr, b: Expr) -> bool:
    """Whether the first of two equal extents is the one to go on with: a number, or the shorter text."""
    return constant_value(a) is not None or (constant_value(b) is None and len(text_of(a)) <= len(text_of(b)))
