"""Numbers as other tools' files write them: `8 * 614e9`, `depth * 2`, `inf`. Nothing is evaluated but arithmetic."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_LONGEST = 200
"""Characters of an expression."""

_LARGEST = 1e30
"""No number is larger but infinity, no exponent larger than 64."""


class NoNumberError(ValueError):
    """An expression that is more than arithmetic of known names."""


def number(value: object, names: Mapping[str, float]) -> float:
    """The number that a value stands for; `names` have values. Raises NoNumberError with what is not understood."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise NoNumberError(f"{_short(value)} is no number")
    try:
        parsed = ast.parse(value.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NoNumberError(f"{value!r} is no number") from error
    try:
        found = _value(parsed, names)
    except ArithmeticError as error:
        raise NoNumberError(f"{value!r} has no value") from error
    if math.isnan(found) or (abs(found) > _LARGEST and not math.isinf(found)):
        raise NoNumberError(f"{value!r} is beyond every size")
    return found


def _short(value: object) -> str:
    return "a list or mapping" if isinstance(value, list | dict) else repr(value)[:_LONGEST]


def _value(node: ast.expr, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case ast.Name(id="inf"):
            return math.inf
        case ast.Name(id=name):
            if name in names:
                return names[name]
            raise NoNumberError(f"{name!r} has no value here")
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, names)
        case ast.BinOp() if type(node.op) in _BINARY:
            left, right = _value(node.left, names), _value(node.right, names)
            if isinstance(node.op, ast.Pow) and abs(right) > 64:
                raise NoNumberError("the exponent is beyond every size")
            found = _BINARY[type(node.op)](left, right)
            if isinstance(found, complex):
                raise NoNumberError("the root of a negative number")
            return found
    raise NoNumberError(f"{ast.unparse(node)!r} is more than arithmetic")
