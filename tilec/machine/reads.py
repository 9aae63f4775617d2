"""What a tile reads: only what was written, and how much of what data index; guards look away from the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tilec.ir.evaluate import Points, scalar_value
from tilec.ir.expr import Access, Call, Expr, TensorExpr, children
from tilec.ir.numpy_scalars import Array
from tilec.ir.reads import by_data
from tilec.machine.memory import Held

_YES = np.True_


def _all(valid: Array) -> Array:
    """One truth for all points where that is so: nothing larger is carried along."""
    return np.asarray(_YES) if valid.all() else valid


def defined(expr: Expr, points: Points, held: Mapping[str, Held]) -> Array:
    """At which points the expression reads written elements of windows only.

    `held` maps tensors to buffers.  The chosen side of a `where` counts, the other one does not.
    """
    match expr:
        case Call("where", (condition, yes, no)):
            sides = [defined(side, points, held) for side in (yes, no)]
            certain = defined(condition, points, held)
            if all(side.all() for side in sides):
                return certain
            return _all(certain & np.where(np.asarray(scalar_value(condition, points)), *sides))
        case Access(tensor, index):
            return _element(held[tensor], index, points, held)
        case _:
            valid: Array = np.asarray(_YES)
            for child in children(expr):
                valid = valid & defined(child, points, held)
            return _all(valid)


def followed(expr: TensorExpr, points: Points, held: Mapping[str, Held]) -> dict[str, int]:
    """Tensor that data index -> how many different elements of it are read at all points."""
    found: dict[str, list[Array]] = {}
    for access, guards in _guarded(expr.value, ()) if any(by_data(expr, tensor) for tensor in held) else ():
        if not by_data(expr, access.tensor) or not held[access.tensor].array.size:
            continue
        seen = np.asarray(_YES)
        for condition, holds in guards:
            seen = seen & (np.asarray(scalar_value(condition, points), bool) == holds)
        source = held[access.tensor]
        places = [
            np.clip(np.asarray(scalar_value(index, points)).astype(np.int64), lo, hi - 1) - lo
            for index, (lo, hi) in zip(access.index, source.window, strict=True)
        ]
        seen, *places = np.broadcast_arrays(seen, *places)
        flat = np.ravel_multi_index(tuple(place[seen] for place in places), source.array.shape)
        found.setdefault(access.tensor, []).append(np.asarray(flat))
    return {tensor: len(np.unique(np.concatenate(flat))) for tensor, flat in found.items()}


def _guarded(
    expr: Expr, guards: tuple[tuple[Expr, bool], ...]
) -> Iterator[tuple[Access, tuple[tuple[Expr, bool], ...]]]:
    """Every access with the conditions around it, and how each must turn out for it to be read."""
    match expr:
        case Call("where", (condition, yes, no)):
            yield from _guarded(condition, guards)
            yield from _guarded(yes, (*guards, (condition, True)))
            yield from _guarded(no, (*guards, (condition, False)))
            return
        case Access():
            yield expr, guards
    for child in children(expr):
        yield from _guarded(child, guards)


def _element(source: Held, index: tuple[Expr, ...], points: Points, held: Mapping[str, Held]) -> Array:
    valid: Array = np.asarray(_YES)
    places = []
    for part, (lo, hi) in zip(index, source.window, strict=True):
        valid = valid & defined(part, points, held)
        place = np.asarray(scalar_value(part, points)).astype(np.int64)
        valid = valid & _all((place >= lo) & (place < hi))
        places.append(np.clip(place - lo, 0, max(0, hi - lo - 1)))
    if not source.written.size:
        return np.zeros(np.broadcast_shapes(valid.shape, *(p.shape for p in places)), bool)
    return _all(valid) if source.written.all() else _all(valid & source.written[tuple(places)])
