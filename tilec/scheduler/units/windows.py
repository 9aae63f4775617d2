"""Words of neighbours in a window: one begins wherever the window may stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from tilec.ir.algebra import linear_form, simplify
from tilec.ir.expr import Binary, Const, Expr, Var, constant_value, variables
from tilec.scheduler.units.margins import span_of


@dataclass(frozen=True, slots=True)
class Windows:
    """Words along a dimension: word i has the elements from `start` + `step` * i on, of which the first `used` are
    multiplied; there are `extent` words."""

    start: int
    step: int
    extent: Expr
    used: int

    def element(self, axis: str, number: int) -> Expr:
        """The index of an element of the word that an iterator stands at."""
        return simplify(Binary("+", Binary("*", Var(axis), Const(self.step)), Const(self.start + number)))

    def inside(self, axis: str, number: int, whole: Expr) -> Expr | None:
        """The condition that an element lies in a dimension of `whole` elements; None where all do."""
        place, words, known = self.element(axis, number), constant_value(self.extent), constant_value(whole)
        limits = [Binary(">=", place, Const(0))] if self.start + number < 0 else []
        if words is None or known is None or self.start + self.step * (words - 1) + number >= known:
            limits.append(Binary("<", place, whole))
        return None if not limits else limits[0] if len(limits) == 1 else Binary("and", *limits)


def windows_of(index: Expr, along: str, count: int, domain: Mapping[str, Expr]) -> tuple[Windows, Expr] | None:
    """Words of `count` elements for an index that an iterator moves together with others, and the index of the word
    that holds the elements there, where `along` runs over words.

    None for any other index, where no word begins at a constant, and where steps leave out words.
    """
    terms, constant = linear_form(index)
    others = {atom: factor for atom, factor in terms.items() if atom != Var(along)}
    extent = constant_value(domain[along])
    if terms.get(Var(along)) != 1 or not others or not extent or any(along in variables(atom) for atom in others):
        return None
    words = -(-extent // count)
    step = gcd(*others.values(), *([count] if words > 1 else []))
    place: Expr = Binary("*", Var(along), Const(count // step if words > 1 else 0))
    for atom, factor in others.items():
        place = Binary("+", place, Binary("*", atom, Const(factor // step)))
    place = simplify(place)
    span = span_of(place, {**domain, along: Const(words)})
    if span is None or not isinstance(span[0], Const):
        return None
    low = int(span[0].value)
    windows = Windows(constant + step * low, step, span[1], count if words > 1 else extent)
    return windows, simplify(Binary("-", place, Const(low)))
