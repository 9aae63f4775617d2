"""How far from its exact result a right kernel may be: the expressions of a group in float64, with error bounds.

A sum of k terms has the error of a random walk of its k roundings, each the size of its partial sums, which are a
bridge from 0 to the sum: `SPREAD` times u sqrt(k (v^2 + sum of t^2)) for terms t and their sum v (Higham and Mary,
Sharper probabilistic backward error analysis, 2020, for terms of random sign).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilec.errors import UnsupportedError
from tilec.ir.evaluate import evaluate, factors
from tilec.ir.expr import Access, Call, Const, Expr, Reduce, TensorExpr, Var, constant_value, operands, walk
from tilec.ir.graph import Node, Tensor
from tilec.ir.scalars import type_of
from tilec.ir.types import HALVES, TTYPES, is_float
from tilec.verify.ball_arithmetic import LEAST, RADIUS, UNIT_ROUNDOFF, Ball, Balls, absolute, plus, real, rounded, times
from tilec.verify.inputs import Array

Floats = NDArray[np.float64]

SPREAD = 3.0
"""Multiple of the expected error of a sum; more than ten standard deviations of terms of random sign, and above the
greatest possible error of up to three terms. Sums of values with few bits, which no order rounds, are exact."""

VAGUE = 0.05
"""Share of the elements of one quantiser, on either side of a boundary, from which on bounds say little."""

_JUMPS = frozenset({"round", "floor", "ceil"})


@dataclass(frozen=True, slots=True)
class Enclosure:
    """Values, floats in f64, and how far each may be off; 0 where it is exact."""

    value: Array
    radius: Floats

    @property
    def counts(self) -> bool:
        """Whether all values are integers, in whatever type, and can only be off by integers."""
        return all(bool((each == np.rint(each)).all()) for each in (self.value, self.radius))

    @property
    def vague(self) -> bool:
        """Whether more than `VAGUE` of the elements of a quantiser may be a step off."""
        return self.counts and bool(np.count_nonzero(self.radius >= 1.0) > VAGUE * self.radius.size)

    def holds(self, actual: Array) -> NDArray[np.bool_]:
        """Which elements of a result are within the bound; no NaN and no infinity."""
        with np.errstate(invalid="ignore", over="ignore"):
            off = np.abs(actual.astype(np.float64) - self.value.astype(np.float64))
            inside: NDArray[np.bool_] = off <= self.radius
        return inside


def quantising(nodes: Sequence[Node], tensors: Mapping[str, Tensor]) -> bool:
    """Whether one of the nodes rounds a real value to an integer, by a function or by a cast."""
    return any(_quantises(node.expr, {t: tensors[t].ttype for t in operands(node.expr)}) for node in nodes)


def _quantises(expr: TensorExpr, ttypes: Mapping[str, str]) -> bool:
    for part in walk(expr.value):
        match part:
            case Call(fn, _) if fn in _JUMPS:
                return True
            case Call(fn, (operand,)) if fn in TTYPES and TTYPES[fn].kind in ("int", "uint"):
                kind = type_of(operand, ttypes)
                if kind in TTYPES and is_float(kind):
                    return True
    return False


def enclosures(nodes: Sequence[Node], ttypes: Mapping[str, str], given: Mapping[str, Array]) -> dict[str, Enclosure]:
    """Results of nodes on exact operands with their error bounds. `ttypes` are those of results and operands.

    Raises UnsupportedError for an expression without a rule, such as a product of more than sums.
    """
    arrays: dict[str, Array] = {name: _wide(array) for name, array in given.items()}
    found: dict[str, Enclosure] = {}
    integers: set[str] = set()
    for node in nodes:
        inexact = [t for t in operands(node.expr) if RADIUS + t in arrays]
        one = _enclosure(node.expr, Balls(ttypes, inexact, integers), arrays)
        found[node.name] = one
        arrays[node.name] = one.value
        if one.radius.any():
            arrays[RADIUS + node.name] = one.radius
        if one.counts:
            integers.add(node.name)
    return found


def _enclosure(expr: TensorExpr, rules: Balls, arrays: Mapping[str, Array]) -> Enclosure:
    own = rules.ttypes[expr.tensor]
    stored = "f64" if is_float(own) else own
    match expr.reducer:
        case None:
            ball = rules.of(expr.value)
            if own in HALVES:
                ball = rounded(ball.value, ball.radius, own)
            return Enclosure(_at(expr, ball.value, arrays, stored), _radius(expr, ball, arrays))
        case "max" | "min":
            ball = rules.of(expr.value)
            value = _at(expr, ball.value, arrays, stored)
            if ball.radius is None:
                return Enclosure(value, np.zeros(value.shape))
            above, below = (plus(real(ball.value), each) for each in (ball.radius, Call("neg", (ball.radius,))))
            ends = [_real(expr, end, arrays) for end in (above, below)]
            wide = value.astype(np.float64)
            return Enclosure(value, np.maximum(np.abs(ends[0] - wide), np.abs(ends[1] - wide)))
        case "sum":
            return _sum(expr, rules, arrays, own, stored)
    raise UnsupportedError(f"no bound of {expr.reducer} over rounded values")


def _sum(expr: TensorExpr, rules: Balls, arrays: Mapping[str, Array], own: str, stored: str) -> Enclosure:
    """The enclosure of a sum of products."""
    balls = [rules.of(part) for part in factors(expr.value)]
    value = _at(expr, _product([ball.value for ball in balls]), arrays, stored)
    radius = np.zeros(value.shape)
    for number, ball in enumerate(balls):
        if ball.radius is not None:
            others = [plus(absolute(real(e.value)), e.radius) for i, e in enumerate(balls) if i != number]
            radius = radius + _real(expr, _product([ball.radius, *others]), arrays)
    kind = rules.kind(expr.value)
    if kind in UNIT_ROUNDOFF:
        squares = _real(expr, _product([times(real(ball.value), real(ball.value)) for ball in balls]), arrays)
        terms = prod(constant_value(expr.domain[name]) or 1 for name in expr.reduce)
        random = SPREAD * UNIT_ROUNDOFF[kind] * np.sqrt(terms * (np.square(value) + squares)) + terms * LEAST[kind]
        sums = np.sqrt(terms * squares) + radius  # at least the sum of the magnitudes of all terms
        exact = (radius == 0) & (sums * UNIT_ROUNDOFF[kind] <= _spacing(rules, balls, arrays))
        radius = radius + np.where(exact, 0.0, random)
    if own in HALVES:
        radius = radius + UNIT_ROUNDOFF[own] * np.abs(value) + LEAST[own]
    return Enclosure(value, radius)


def _spacing(rules: Balls, balls: Sequence[Ball], arrays: Mapping[str, Array]) -> float:
    """A power of two of which all products of the operands of these factors are multiples; 0 where none is known."""
    spacing = 1.0
    for ball in balls:
        parts = [each for each in walk(ball.value) if isinstance(each, Access)]
        moved = all(isinstance(each, Access | Const | Var) for each in chosen(ball.value))
        if not moved or any(each.tensor in rules.inexact for each in parts):
            return 0.0
        spacing *= min((common_spacing(arrays[each.tensor]) for each in parts), default=0.0)
    return spacing


def chosen(expr: Expr) -> Iterator[Expr]:
    """What a value is one of: the branches of its `where`."""
    match expr:
        case Call("where", (_, yes, no)):
            yield from (*chosen(yes), *chosen(no))
        case _:
            yield expr


def common_spacing(values: Array) -> float:
    """The greatest power of two that divides all finite values; infinite if all are 0."""
    wide = np.asarray(values, np.float64)
    mantissas, exponents = np.frexp(wide[np.isfinite(wide) & (wide != 0)])
    if not mantissas.size:
        return float("inf")
    bits = np.ldexp(mantissas, 53).astype(np.int64)
    return float(np.ldexp((bits & -bits).astype(np.float64), exponents - 53).min())


def _real(expr: TensorExpr, body: Expr, arrays: Mapping[str, Array]) -> Floats:
    """The same in f64."""
    return _at(expr, body, arrays, "f64").astype(np.float64, copy=False)


def _at(expr: TensorExpr, body: Expr, arrays: Mapping[str, Array], ttype: str) -> Array:
    """Another scalar body over the iterators of an expression, reduced alike."""
    whole = replace(expr, body=replace(expr.body, body=body) if isinstance(expr.body, Reduce) else body)
    return evaluate(whole, {t: arrays[t] for t in operands(whole)}, ttype=ttype)


def _radius(expr: TensorExpr, ball: Ball, arrays: Mapping[str, Array]) -> Floats:
    return _real(expr, ball.radius if ball.radius is not None else Const(0.0), arrays)


def _product(parts: Sequence[Expr]) -> Expr:
    product = parts[0]
    for part in parts[1:]:
        product = times(product, part)
    return product


def _wide(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind in "fV" else array
