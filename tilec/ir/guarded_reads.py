"""Check of guarded reads point by point: whether an expression reads a tensor inside given boxes only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilec.ir.evaluate import Points, scalar_value
from tilec.ir.expr import Access, Binary, Call, Expr, children, walk

Bools = NDArray[np.bool_]
Box = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class GuardedReads:
    """Check of the reads of `tensor` over `points`.

    A read is allowed inside the boxes `values`, and inside the boxes `constants` where those lie outside the tensor,
    whose shape is `shape`. Boxes are lists of [lo, hi) per dimension.
    """

    tensor: str
    values: Sequence[Box]
    constants: Sequence[Box]
    shape: Sequence[int]
    points: Points

    def safe(self, expr: Expr) -> Bools:
        """Mask over the points: whether every read that is evaluated lies in an allowed box; of a `where` only the
        branch selected counts."""
        match expr:
            case Call("where", (condition, yes, no)):
                parts = _conjuncts(condition)
                read = [part for part in parts if _reads(part)]
                chosen: Bools = np.asarray(True)
                for part in parts:
                    if not _reads(part):
                        chosen = np.asarray(chosen & np.asarray(scalar_value(part, self.points), bool))
                # A condition on read values may select the other branch as well.
                inside = self._all((yes, no, *read)) if read else self.safe(yes)
                return np.where(chosen, inside, self._all((no, *read)))
            case Access(tensor, index) if tensor == self.tensor:
                return np.asarray(self._all(index) & self._inside(index))
            case _:
                return self._all(children(expr))

    def _all(self, parts: Sequence[Expr]) -> Bools:
        result: Bools = np.asarray(True)
        for part in parts:
            result = np.asarray(result & self.safe(part))
        return result

    def _inside(self, index: Sequence[Expr]) -> Bools:
        around = np.asarray(self._in_one(index, self.constants) & ~self._in_one(index, [[(0, n) for n in self.shape]]))
        return np.asarray(self._in_one(index, self.values) | around)

    def _in_one(self, index: Sequence[Expr], boxes: Sequence[Box]) -> Bools:
        result: Bools = np.asarray(False)
        for box in boxes:
            here: Bools = np.asarray(True)
            for part, (lo, hi), extent in zip(index, box, self.shape, strict=True):
                if _reads(part):  # data-dependent: any element of the dimension
                    here = np.asarray(here & (lo <= 0) & (extent <= hi))
                else:
                    place = np.asarray(scalar_value(part, self.points))
                    here = np.asarray(here & (lo <= place) & (place < hi))
            result = np.asarray(result | here)
        return result


def _conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The operands of nested `and`: conditions that all have to hold."""
    if isinstance(condition, Binary) and condition.op == "and":
        return (*_conjuncts(condition.left), *_conjuncts(condition.right))
    return (condition,)


def _reads(expr: Expr) -> bool:
    return any(isinstance(e, Access) for e in walk(expr))
