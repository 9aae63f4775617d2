"""Margins around a tensor that stand for the guards of its reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.ir.algebra import linear_form, simplify
from tilec.ir.expr import Binary, Const, Expr, Var, constant_value, variables
from tilec.lower.padding import beyond_guard


@dataclass(frozen=True, slots=True)
class Margins:
    """The part of the plane that an access goes through: of every dimension of a tensor the lowest index, a constant,
    and the number of indices from there."""

    lows: tuple[int, ...]
    extents: tuple[Expr, ...]

    def index(self, index: Sequence[Expr]) -> tuple[Expr, ...]:
        """An index of the tensor as one of the tensor with margins."""
        return tuple(
            simplify(Binary("-", at, Const(low))) if low else at for at, low in zip(index, self.lows, strict=True)
        )

    def inside(self, axes: Sequence[str], shape: Sequence[Expr]) -> Expr | None:
        """The condition that a point of the tensor with margins is one of the tensor; None where all are."""
        condition: Expr | None = None
        for axis, low, extent, whole in zip(axes, self.lows, self.extents, shape, strict=True):
            place = simplify(Binary("+", Var(axis), Const(low)))
            limits = [Binary(">=", place, Const(0))] if low < 0 else []
            limits += [Binary("<", place, whole)] if extent != whole or low else []
            for limit in limits:
                condition = limit if condition is None else Binary("and", condition, limit)
        return condition


def margins_of(
    condition: Expr, index: Sequence[Expr], shape: Sequence[Expr], domain: Mapping[str, Expr], whole: int
) -> Margins | None:
    """The margins of a tensor in which a guarded access stays; dimension `whole` has none.

    None where the guard says more than that the index is inside the tensor, where the lowest index is no constant, and
    where steps leave out elements, which would be copied for nothing.
    """
    if beyond_guard(condition, tuple(index), tuple(shape)) != []:
        return None
    lows, extents = [], []
    for dimension, (at, extent) in enumerate(zip(index, shape, strict=True)):
        span = (Const(0), extent) if dimension == whole else span_of(at, domain)
        if span is None or not isinstance(span[0], Const):
            return None
        lows.append(int(span[0].value))
        extents.append(span[1])
    return Margins(tuple(lows), tuple(extents))


def span_of(index: Expr, domain: Mapping[str, Expr]) -> tuple[Expr, Expr] | None:
    """The lowest value of an affine index, and the number of values up to the highest; None for any other index, and
    where values between are left out."""
    terms, constant = linear_form(index)
    low: Expr = Const(constant)
    steps: list[tuple[int, Expr]] = []
    for atom, factor in terms.items():
        if isinstance(atom, Var) and atom.name in domain:
            steps.append((abs(factor), domain[atom.name]))
            low = low if factor > 0 else Binary("+", low, _reach(factor, domain[atom.name]))
        elif variables(atom) & domain.keys():
            return None
        else:
            low = Binary("+", low, Binary("*", atom, Const(factor)))
    count = _values(steps)
    return None if count is None else (simplify(low), count)


def _values(steps: Sequence[tuple[int, Expr]]) -> Expr | None:
    """The number of values of a sum of iterators in steps of a size, of extents; None where values are left out. No
    step is larger than what those below it cover, so that the number is none below 0 for an empty iterator."""
    count: Expr = Const(1)
    covered = 1
    for step, extent in sorted(steps, key=lambda each: each[0]):
        known = constant_value(extent)
        if known != 1 and step > covered:
            return None
        covered += step * (known - 1) if known else 0
        count = Binary("+", count, _reach(step, extent))
    return simplify(count)


def _reach(step: int, extent: Expr) -> Expr:
    return Binary("*", Const(step), Binary("-", extent, Const(1)))
