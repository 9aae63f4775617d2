"""What accesses look like: pure movement or not, affine or not, the stride in memory along an iterator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tilec.ir.algebra import Ranges, polynomial, simplify
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
from tilec.spec.machine_costs import MachineCosts


def is_movement(expr: TensorExpr) -> bool:
    """Whether the node only moves elements: an access, or a choice by iterators between accesses and literals."""
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
    """Whether an index is a sum of iterators times sizes, plus a size."""
    for term in polynomial(index):
        moving = [atom for atom in term if variables(atom) & iterators]
        if len(moving) > 1 or any(not isinstance(atom, Var) for atom in moving):
            return False
    return True


def divisions(body: Expr) -> int:
    """How many `//` and `%` an expression holds, those in indices and guards included."""
    return sum(1 for part in walk(body) if isinstance(part, Binary) and part.op in ("//", "%"))


def choices(body: Expr) -> int:
    """How many `where` choose between two tensors (one that guards an access against a literal does not count)."""
    found = 0
    for part in walk(body):
        match part:
            case Call("where", (_, yes, no)) if accesses(yes) and accesses(no):
                found += 1
            case _:
                pass
    return found


def offset(access: Access, shape: Sequence[Expr]) -> Expr:
    """Position of the element in the row-major tensor, in elements."""
    flat: Expr = Const(0)
    for index, extent in zip(access.index, shape, strict=True):
        flat = Binary("+", Binary("*", flat, extent), index)
    return flat


@lru_cache(maxsize=65536)
def _stride(access: Access, shape: tuple[Expr, ...], iterator: str, extent: Expr) -> Expr | None:
    here = offset(access, shape)
    if iterator not in variables(here):
        return Const(0)
    ranges: Ranges = {iterator: (Const(0), simplify(Binary("-", extent, Const(2))))}
    there = substitute(here, {iterator: Binary("+", Var(iterator), Const(1))})
    step = simplify(Binary("-", there, here), ranges)
    if iterator in variables(step) or any(isinstance(e, Access) for e in walk(step)):
        return None
    return step


def stride(access: Access, shape: Sequence[Expr], iterator: str, extent: Expr) -> Expr | None:
    """Elements between neighbours along an iterator of that extent; None when the distance varies."""
    return _stride(access, tuple(shape), iterator, extent)


def runs_along(access: Access, shape: Sequence[Expr], iterator: str, extent: Expr) -> bool:
    """Whether a vector along the iterator is one load or one broadcast: stride 1 or 0."""
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
    """Worth of a lane of a vector along an iterator: 1 for one load or broadcast, `shuffled` where a few loads hold it
    in turns (strides, channels interleaved, pixels doubled), `gathered` elsewhere."""
    return _smoothness(access, tuple(shape), iterator, extent, costs)


def reads_pointwise(access: Access, reader: TensorExpr, shape: Sequence[Expr]) -> dict[int, str] | None:
    """Dimension -> iterator when every point of `reader` reads its own element and all are read, else None.

    Dimensions and iterators of extent 1 are left out.
    """
    moving = {i for i, e in zip(reader.spatial, reader.shape, strict=True) if constant_value(e) != 1}
    found: dict[int, str] = {}
    for dimension, (index, extent) in enumerate(zip(access.index, shape, strict=True)):
        if constant_value(extent) == 1:
            continue
        if not (isinstance(index, Var) and index.name in moving and reader.domain[index.name] == extent):
            return None
        found[dimension] = index.name
    return found if set(found.values()) == moving and len(found) == len(moving) else None


def recomputed(expr: TensorExpr, access: Access) -> int | None:
    """How many points of the whole domain read one element of an access, on average; None while unknown."""
    read = frozenset().union(*(variables(i) for i in access.index))
    missing = [constant_value(e) for i, e in expr.domain.items() if i not in read]
    total = 1
    for extent in missing:
        if extent is None:
            return None
        total *= extent
    return total
