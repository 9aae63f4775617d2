"""Integer expressions - indices, extents, conditions on them - as C++."""

from __future__ import annotations

from tilec.codegen.gpu.print.c_text import Names
from tilec.ir.algebra import bounds_of
from tilec.ir.expr import Access, Binary, Call, Const, Expr, Var
from tilec.ir.known_ranges import KnownRanges

_OPERATORS = {"and": "&&", "or": "||"}


def index_text(expr: Expr, names: Names, ranges: KnownRanges, wide: bool = False) -> str:
    """An integer expression; `wide` computes in 64 bits. Floor division is C's where the dividend is not negative;
    accesses are positions in memory of the device."""
    match expr:
        case Const(bool() as value):
            return "true" if value else "false"
        case Const(value):
            suffix = "LL" if wide else ""
            if value in (-(1 << 31), -(1 << 63)):  # C++ has no negative literals
                return f"({int(value) + 1}{suffix} - 1)"
            return f"({int(value)}{suffix})" if value < 0 else f"{int(value)}{suffix}"
        case Var(name):
            return f"(long long){names[name]}" if wide else names[name]
        case Binary("//" | "%" as op, left, right):
            return _division(op, left, right, names, ranges, wide)
        case Binary(op, left, right):
            a, b = (index_text(each, names, ranges, wide) for each in (left, right))
            return f"({a} {_OPERATORS.get(op, op)} {b})"
        case Call("minimum" | "maximum" as fn, (left, right)):
            a, b = (index_text(each, names, ranges, wide) for each in (left, right))
            return f"{'t_min' if fn == 'minimum' else 't_max'}({a}, {b})"
        case Call("where", (condition, yes, no)):
            c, a, b = (index_text(each, names, ranges, wide) for each in (condition, yes, no))
            return f"({c} ? {a} : {b})"
        case Call("neg" | "not" as fn, (inner,)):
            return f"({'-' if fn == 'neg' else '!'}{index_text(inner, names, ranges, wide)})"
        case Access(memory, (at,)):
            return f"({'long long' if wide else 'int'})LDG({names[memory]} + {index_text(at, names, ranges, wide)})"
    raise AssertionError(expr)


def _division(op: str, left: Expr, right: Expr, names: Names, ranges: KnownRanges, wide: bool) -> str:
    a, b = (index_text(each, names, ranges, wide) for each in (left, right))
    lowest, divisor = bounds_of(left, ranges)[0], bounds_of(right, ranges)[0]
    if lowest is not None and lowest >= 0 and divisor is not None and divisor > 0:
        return f"({a} {'/' if op == '//' else '%'} {b})"
    return f"{'t_floordiv' if op == '//' else 't_floormod'}({a}, {b})"


def unwrapped(text: str) -> str:
    """A text without the parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for position, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and position < len(text) - 1:
            return text
    return text[1:-1]
