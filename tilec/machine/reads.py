"""Whether a tile reads only what was written: guards may look away from the rest."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilec.ir.evaluate import Points, scalar_value
from tilec.ir.expr import Access, Call, Expr, children
from tilec.ir.numpy_scalars import Array
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
