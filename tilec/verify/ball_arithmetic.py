"""Ball arithmetic on scalar bodies: a body in float64, and a bound of how far its computation in its types is off.

Every operation that rounds adds its unit roundoff, except where the result is representable and what it is computed
from is exact. A function with jumps (round, a cast to integers, a comparison) is exact where its argument is farther
than its radius from a jump; elsewhere its radius is the height of the jump.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from tilec.errors import UnsupportedError
from tilec.ir.expr import COMPARISONS, Access, Binary, Call, Const, Expr, Var
from tilec.ir.scalars import type_of
from tilec.ir.types import HALVES, TTYPES, is_float

UNIT_ROUNDOFF = {"f64": 2.0**-52, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
"""Largest relative error of one rounding; of f64, in which balls themselves are computed, twice as much."""

LEAST = {"f64": 2.0**-1074, "f32": 2.0**-149, "f16": 2.0**-24, "bf16": 2.0**-133}
"""Largest absolute error of a rounding among denormal numbers."""

APPROXIMATION = 8.0
"""Roundings that a transcendental function counts as: four units in the last place."""

RADIUS = "%radius of "
"""Prefix of the operands that hold radii."""

_MONOTONE = frozenset({"round", "floor", "ceil", "sign"})
_APPROXIMATED = frozenset({"exp", "log", "tanh", "erf", "sigmoid", "atan", "sinh", "asinh"})


@dataclass(frozen=True, slots=True)
class Ball:
    """A value, floats in f64 and integers in their own type, and its radius in f64; None for an exact value. The
    radius of a boolean is 1 where it may be the other one."""

    value: Expr
    radius: Expr | None = None


@dataclass(frozen=True, slots=True)
class Balls:
    """The rules. `ttypes` are the tTypes of operands as the body has them, `inexact` the operands with radii,
    `integers` those that hold integers in whatever type, and are off by integers if at all."""

    ttypes: Mapping[str, str]
    inexact: Collection[str]
    integers: Collection[str] = ()

    def of(self, expr: Expr) -> Ball:
        """The ball of a scalar body. Raises UnsupportedError for what has no rule."""
        match expr:
            case Const() | Var():
                return Ball(expr)
            case Access(tensor, index):
                if any(self.inexact_index(each) for each in index):
                    raise UnsupportedError(f"an index of {tensor} depends on rounding")
                return Ball(expr, Access(RADIUS + tensor, index) if tensor in self.inexact else None)
            case Call("where", (condition, yes, no)):
                return self._chosen(self.of(condition), *self._operands((yes, no)))
            case Call(fn, (operand,)) if fn in TTYPES:
                return self._cast(fn, operand)
            case Binary(op, left, right):
                return self._binary(expr, op, *self._operands((left, right)))
            case Call(fn, args):
                return self._call(expr, fn, self._operands(args))
        raise UnsupportedError(f"no bound of {expr}")

    def inexact_index(self, index: Expr) -> bool:
        """Whether an index reads an operand with a radius."""
        return self.of(index).radius is not None

    def kind(self, expr: Expr) -> str:
        """The tType in which an expression is computed: f32 for half precision."""
        kind = type_of(expr, self.ttypes)
        return "f32" if kind in HALVES else kind

    def _operands(self, args: tuple[Expr, ...]) -> list[Ball]:
        """The balls of arguments, literals rounded to the type that they adopt."""
        kinds = [self.kind(each) for each in args]
        adopted = next((each for each in kinds if each in TTYPES), "f64")
        balls = [self.of(each) for each in args]
        return [Ball(_literal(each.value, adopted), each.radius) for each in balls]

    def _chosen(self, condition: Ball, yes: Ball, no: Ball) -> Ball:
        value = Call("where", (condition.value, yes.value, no.value))
        radius = None
        if yes.radius is not None or no.radius is not None:
            radius = Call("where", (condition.value, yes.radius or ZERO, no.radius or ZERO))
        if condition.radius is None:
            return Ball(value, radius)
        apart = plus(plus(absolute(minus(real(yes.value), real(no.value))), yes.radius), no.radius)
        return Ball(value, plus(where(positive(condition.radius), apart, ZERO), radius))

    def _cast(self, ttype: str, operand: Expr) -> Ball:
        ball, given = self.of(operand), type_of(operand, self.ttypes)
        if ttype == "bool":
            zero = Const(0.0) if given in TTYPES and is_float(given) else Const(0)
            return self._compared("!=", ball, Ball(zero)) if given != "bool" else ball
        if is_float(ttype):
            if given == "bool" and ball.radius is not None:
                return Ball(real(ball.value), ball.radius)
            return rounded(real(ball.value), ball.radius, ttype)
        return monotone(lambda value: Call(ttype, (value,)), ball)

    def _binary(self, expr: Expr, op: str, a: Ball, b: Ball) -> Ball:
        if op in COMPARISONS:
            return self._compared(op, a, b)
        value = Binary(op, a.value, b.value)
        if op in ("and", "or"):
            return Ball(value, None if a.radius is None and b.radius is None else plus(a.radius or ZERO, b.radius))
        if a.radius is None and b.radius is None and op in ("//", "%"):
            return Ball(value)
        integral = op in ("+", "-", "*") and self._is_integral(expr)
        return rounded(value, self._spread(op, a, b), self.kind(expr), integral=integral)

    def _is_integral(self, expr: Expr) -> bool:
        """Whether a value is an integer, in whatever type."""
        match expr:
            case Const(value):
                return float(value).is_integer()
            case Access(tensor, _):
                return tensor in self.integers or not is_float(self.ttypes[tensor])
            case Binary("+" | "-" | "*", left, right):
                return self._is_integral(left) and self._is_integral(right)
            case Call("round" | "floor" | "ceil", _):
                return True
            case Call("where", (_, *args)) | Call("maximum" | "minimum", args):
                return all(self._is_integral(each) for each in args)
            case Call(fn, (operand,)) if fn in TTYPES or fn in ("neg", "abs"):
                return (fn in TTYPES and not is_float(fn)) or self._is_integral(operand)
        return isinstance(expr, Var)

    def _spread(self, op: str, a: Ball, b: Ball) -> Expr | None:
        """The radius of an operation from those of its operands."""
        if a.radius is None and b.radius is None:
            return None
        x, y = absolute(real(a.value)), absolute(real(b.value))
        match op:
            case "+" | "-":
                return plus(a.radius or ZERO, b.radius)
            case "*":
                one = times(a.radius, plus(y, b.radius)) if a.radius is not None else ZERO
                return plus(one, times(x, b.radius) if b.radius is not None else None)
            case "/":
                quotient = absolute(Binary("/", real(a.value), real(b.value)))
                above = plus(a.radius or ZERO, times(quotient, b.radius) if b.radius is not None else None)
                below = minus(y, b.radius) if b.radius is not None else y
                return where(positive(below), Binary("/", above, below), where(positive(above), INFINITE, ZERO))
        raise UnsupportedError(f"no bound of {op} of rounded values")

    def _compared(self, op: str, a: Ball, b: Ball) -> Ball:
        value = Binary(op, a.value, b.value)
        if a.radius is None and b.radius is None:
            return Ball(value)
        radius = plus(a.radius or ZERO, b.radius)
        near = Binary("<=", absolute(minus(real(a.value), real(b.value))), radius)
        return Ball(value, where(Binary("and", near, positive(radius)), Const(1.0), ZERO))

    def _call(self, expr: Expr, fn: str, balls: list[Ball]) -> Ball:
        value = Call(fn, tuple(each.value for each in balls))
        radii = [each.radius for each in balls if each.radius is not None]
        match fn:
            case "neg" | "abs" | "not":
                return Ball(value, balls[0].radius)
            case "maximum" | "minimum":
                return Ball(
                    value, Call("maximum", (radii[0], radii[1])) if len(radii) == 2 else next(iter(radii), None)
                )
            case _ if fn in _MONOTONE:
                return monotone(lambda each: Call(fn, (each,)), balls[0])
            case "sqrt":
                inner = monotone(lambda each: Call(fn, (Call("maximum", (each, Const(0.0))),)), balls[0])
                return rounded(value, inner.radius, self.kind(expr))
            case _ if fn in _APPROXIMATED:
                radius = monotone(lambda each: Call(fn, (each,)), balls[0]).radius
                return rounded(value, radius, self.kind(expr), APPROXIMATION)
            case "isnan" | "isinf":
                return Ball(value)
        if radii:
            raise UnsupportedError(f"no bound of {fn} of rounded values")
        return rounded(value, None, self.kind(expr), APPROXIMATION)


ZERO = Const(0.0)
INFINITE = Const(float("inf"))


def rounded(value: Expr, radius: Expr | None, ttype: str, roundings: float = 1.0, integral: bool = False) -> Ball:
    """The ball of a value that is rounded to a type; integers are exact, `integral` floats as long as they fit, and
    infinities, which masks add to scores."""
    if ttype not in UNIT_ROUNDOFF:
        return Ball(value, radius)
    own = plus(times(Const(roundings * UNIT_ROUNDOFF[ttype]), absolute(value)), Const(roundings * LEAST[ttype]))
    if roundings == 1.0:
        exact: Expr = Binary("==", Call("f64", (Call(ttype, (value,)),)), value)
        if radius is not None:
            largest = Const(1.0 / UNIT_ROUNDOFF[ttype] if integral else 0.0)
            reach = plus(absolute(value), radius) if integral else radius
            exact = Binary("and", exact, Binary("<=", reach, largest))
        own = where(exact, ZERO, own)
    if radius is not None:
        own = where(Binary("==", absolute(value), INFINITE), ZERO, own)
    return Ball(value, plus(own, radius))


def monotone(fn: Callable[[Expr], Expr], ball: Ball) -> Ball:
    """The ball of a function that never falls: as far as it rises over the ball of its argument."""
    value = fn(ball.value)
    if ball.radius is None:
        return Ball(value)
    middle, argument = real(value), real(ball.value)
    above = minus(real(fn(plus(argument, ball.radius))), middle)
    below = minus(middle, real(fn(minus(argument, ball.radius))))
    return Ball(value, Call("maximum", (above, below)))


def real(value: Expr) -> Expr:
    """The value in f64."""
    return Call("f64", (value,))


def absolute(value: Expr) -> Expr:
    """The magnitude of a value in f64."""
    return Call("abs", (value,))


def positive(value: Expr) -> Expr:
    """Whether a value in f64 is above 0."""
    return Binary(">", value, ZERO)


def plus(one: Expr, other: Expr | None) -> Expr:
    """The sum of values in f64; nothing counts as 0."""
    if other is None or other == ZERO:
        return one
    return other if one == ZERO else Binary("+", one, other)


def minus(one: Expr, other: Expr) -> Expr:
    """The difference of values in f64."""
    return Binary("-", one, other)


def times(one: Expr, other: Expr) -> Expr:
    """The product of values in f64."""
    return Binary("*", one, other)


def where(condition: Expr, yes: Expr, no: Expr) -> Expr:
    """One value or the other."""
    return Call("where", (condition, yes, no))


def _literal(value: Expr, ttype: str) -> Expr:
    """A literal as it is in a type; any other value as it is."""
    if ttype == "f32" and isinstance(value, Const) and isinstance(value.value, float):
        return Const(float(np.float32(value.value)))
    return value
