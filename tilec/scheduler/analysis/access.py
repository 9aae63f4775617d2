"""Properties of accesses: pure movement, affine indices, strides in memory, pointwise reads, load efficiency."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tilec.ir.algebra import polynomial, simplify
from tilec.ir.expr import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    TensorExpr,
    Var,
    accesses,
    constant_value,
    substitute,
    variables,
    walk,
)
from tilec.ir.known_ranges import Ranges
from tilec.spec.machine_costs import MachineCosts


def is_movement(expr: TensorExpr) -> bool:
    """Whether the node only moves elements: an access, or a `where` on iterators between accesses and literals."""
    return expr.reducer is None and _moves(expr.body) and any(isinstance(e, Access) for e in walk(expr.body))


def _moves(body: Expr) -> bool:
    match body:
        case Access():
            return not is_data_dependent(body)
        case Const():
            return True
        case Call("where", (condition, yes, no)):
            return not accesses(condition) and _moves(yes) and _moves(no)
        case _:
            return False


def is_data_dependent(access: Access) -> bool:
    """Whether an index reads a tensor (Gather)."""
    return any(isinstance(e, Access) for i in access.index for e in walk(i))


@lru_cache(maxsize=65536)
def is_affine(index: Expr, iterators: frozenset[str]) -> bool:
    """Whether an index is a sum of products iterator * size, plus a size, where a size holds no iterator."""
    for term in polynomial(index):
        moving = [atom for atom in term if variables(atom) & iterators]
        if len(moving) > 1 or any(not isinstance(atom, Var) for atom in moving):
            return False
    return True


def divisions(body: Expr) -> int:
    """Number of `//` and `%` in an expression, including those in indices and guards."""
    return sum(1 for part in walk(body) if isinstance(part, Binary) and part.op in ("//", "%"))


def choices(body: Expr) -> int:
    """Number of `where` calls that choose between two tensors; guards of an access against a literal do not count."""
    count = 0
    for part in walk(body):
        match part:
            case Call("where", (_, yes, no)) if accesses(yes) and accesses(no):
                count += 1
            case _:
                pass
    return count


def offset(access: Access, shape: Sequence[Expr]) -> Expr:
    """Row-major offset of the accessed element, in elements."""
    flat: Expr = Const(0)
    for index, extent in zip(access.index, shape, strict=True):
        flat = Binary("+", Binary("*", flat, extent), index)
    return flat


@lru_cache(maxsize=65536)
def _stride(access: Access, shape: tuple[Expr, ...], iterator: str, extent: Expr) -> Expr | None:
    start = offset(access, shape)
    if iterator not in variables(start):
        return Const(0)
    ranges: Ranges = {iterator: (Const(0), simplify(Binary("-", extent, Const(2))))}
    following = substitute(start, {iterator: Binary("+", Var(iterator), Const(1))})
    step = simplify(Binary("-", following, start), ranges)
    if iterator in variables(step) or any(isinstance(e, Access) for e in walk(step)):
        return None
    return step


def stride(access: Access, shape: Sequence[Expr], iterator: str, extent: Expr) -> Expr | None:
    """Distance in memory, in elements, between neighbours along an iterator of that extent; None if it varies."""
    return _stride(access, tuple(shape), iterator, extent)


def runs_along(access: Access, shape: Sequence[Expr], iterator: str, extent: Expr) -> bool:
    """Whether a vector along the iterator is one load or one broadcast (stride 1 or 0)."""
    step = stride(access, shape, iterator, extent)
    return step is not None and constant_value(step) in (0, 1)


@lru_cache(maxsize=65536)
def _smoothness(access: Access, shape: tuple[Expr, ...], iterator: str, extent: Expr, costs: MachineCosts) -> float:
    step = stride(access, shape, iterator, extent)
    if step is not None and constant_value(step) in (0, 1):
        return 1.0
    turns = range(2, costs.interleaved + 1) if step is None and not is_data_dependent(access) else range(0)
    for turn in turns:
        every = simplify(Binary("//", extent, Const(turn)))
        places = [Binary("+", Binary("*", Var(iterator), Const(turn)), Const(t)) for t in range(turn)]
        moved = [Access(access.tensor, tuple(substitute(i, {iterator: p}) for i in access.index)) for p in places]
        steps = {stride(each, shape, iterator, every) for each in moved}
        if len(steps) == 1 and None not in steps:
            step = steps.pop()
            break
    near = constant_value(step) if step is not None else None
    return costs.shuffled if near is not None and -1 <= near <= costs.interleaved else costs.gathered


def smoothness(access: Access, shape: Sequence[Expr], iterator: str, extent: Expr, costs: MachineCosts) -> float:
    """Load efficiency per lane of a vector along an iterator: 1 for one load or broadcast, `shuffled` where a few whole
    loads hold the lanes (strides, interleaved channels, doubled pixels), `gathered` otherwise."""
    return _smoothness(access, tuple(shape), iterator, extent, costs)


def reads_pointwise(access: Access, reader: TensorExpr, shape: Sequence[Expr]) -> dict[int, str] | None:
    """Map from dimension to iterator if every point of `reader` reads its own element and every element is read; else
    None.

    Dimensions and iterators of extent 1 are left out.
    """
    moving = {i for i, e in zip(reader.spatial, reader.shape, strict=True) if constant_value(e) != 1}
    matched: dict[int, str] = {}
    for dimension, (index, extent) in enumerate(zip(access.index, shape, strict=True)):
        if constant_value(extent) == 1:
            continue
        if not (isinstance(index, Var) and index.name in moving and reader.domain[index.name] == extent):
            return None
        matched[dimension] = index.name
    return matched if set(matched.values()) == moving and len(matched) == len(moving) else None


def recomputed(expr: TensorExpr, access: Access) -> int | None:
    """Average number of points of the whole domain that read one element of an access; None while it is unknown."""
    read = frozenset().union(*(variables(i) for i in access.index))
    missing = [constant_value(e) for i, e in expr.domain.items() if i not in read]
    total = 1
    for extent in missing:
        if extent is None:
            return None
        total *= extent
    return total
