"""The scalar functions of tensor expressions and the types of scalar bodies (type-annotated expressions; Ladder, 3.1).

A body is typed bottom-up: an access has its tensor's tType, a literal adopts the type of the other operand, an iterator
is an `i64`, a cast is a call named after the tType (`f32(x)`), `bits_f32(x)` one that keeps the bits. Nothing is
promoted silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tilec.ir.dots import DOTS, WORD, WORD_TTYPE
from tilec.ir.expr import COMPARISONS, Access, Binary, Call, Const, Expr, Reduce, Var
from tilec.ir.text import text_of
from tilec.ir.types import HALVES, TTYPES


@dataclass(frozen=True, slots=True)
class Function:
    """Signature of a scalar function: number and kind of its arguments, and whether it returns their type or a bool."""

    arity: int
    takes: Literal["float", "number", "integer", "bool", "any"]
    returns: Literal["same", "bool"] = "same"


_FLOAT_FUNCTIONS = (
    *("exp", "log", "sqrt", "tanh", "erf", "sigmoid", "floor", "ceil", "round"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
)


def _table() -> dict[str, Function]:
    table = {"neg": Function(1, "number"), "not": Function(1, "bool")}
    for name in _FLOAT_FUNCTIONS:
        table[name] = Function(1, "float")
    table |= {name: Function(1, "number") for name in ("abs", "sign")}
    table |= {name: Function(1, "float", "bool") for name in ("isnan", "isinf")}
    table |= {name: Function(2, "any") for name in ("maximum", "minimum")}
    table |= {name: Function(2, "number") for name in ("pow", "fmod", "truncdiv")}
    table |= {name: Function(2, "integer") for name in ("bitand", "bitor", "bitxor", "shl", "shr")}
    table["bitnot"] = Function(1, "integer")
    return table


FUNCTIONS: dict[str, Function] = _table()
"""Name -> signature. `round` is half to even, `fmod` and `truncdiv` are C's, `//` and `%` floor; `maximum`
and `minimum` propagate NaN. `where` and casts are typed apart."""

BITCASTS: dict[str, str] = {
    f"bits_{name}": name for name, ttype in TTYPES.items() if not (ttype.coded or ttype.kind == "bool")
}
"""Function -> the tType as which it reinterprets the bits of a value of the same width."""

_KINDS = {
    "float": {"float"},
    "integer": {"int", "uint"},
    "number": {"float", "int", "uint"},
    "bool": {"bool"},
    "any": {"float", "int", "uint", "bool"},
}

Weak = Literal["weak int", "weak float", "weak bool"]


def is_weak(kind: str) -> bool:
    """Whether a type is that of a literal, which adopts the type of the other operand."""
    return kind.startswith("weak")


def _kind(name: str) -> str:
    return name.removeprefix("weak ") if is_weak(name) else TTYPES[name].kind


def fits(actual: str, declared: str) -> bool:
    """Whether a body of type `actual` may be stored as `declared` without a cast.

    A result computed in f32 is rounded to half precision where it is stored; a cast rounds wherever it stands.
    """
    if actual == declared or (actual == "f32" and declared in HALVES):
        return True
    if not is_weak(actual):
        return False
    target = TTYPES[declared].kind
    return {"weak int": target != "bool", "weak float": target == "float", "weak bool": target == "bool"}[actual]


def _unify(a: str, b: str, expr: Expr) -> str:
    if a == b:
        return a
    for weak, other in ((a, b), (b, a)):
        if is_weak(weak):
            if not is_weak(other) and fits(weak, other):
                return other
            if {weak, other} == {"weak int", "weak float"}:
                return "weak float"
    raise TypeError(f"{a} meets {b} in {text_of(expr)}")


def type_of(expr: Expr, tensors: Mapping[str, str]) -> str:
    """The tType of a scalar body, or `weak int|float|bool` for a literal.

    `tensors` maps tensor names to tTypes.  Raises TypeError that quotes the offending sub-expression and
    KeyError for a tensor without a type.
    """
    match expr:
        case Var():
            return "i64"
        case Const(value):
            return f"weak {type(value).__name__}"
        case Access(tensor, index):
            for i in index:
                if (kind := type_of(i, tensors)) not in ("i64", "i32", "weak int"):
                    raise TypeError(f"index of type {kind} in {text_of(expr)}")
            return tensors[tensor]
        case Reduce(_, _, body):
            return type_of(body, tensors)
        case Binary("and" | "or", left, right):
            return _check(expr, (left, right), "bool", tensors)
        case Binary(op, left, right) if op in COMPARISONS:
            _check(expr, (left, right), "any", tensors)
            return "bool"
        case Binary("/", left, right):
            return _check(expr, (left, right), "float", tensors)
        case Binary("//" | "%", left, right):
            return _check(expr, (left, right), "integer", tensors)
        case Binary(_, left, right):
            return _check(expr, (left, right), "number", tensors)
        case Call("where", (condition, yes, no)):
            _check(expr, (condition,), "bool", tensors)
            return _check(expr, (yes, no), "any", tensors)
        case Call(fn, (operand,)) if fn in TTYPES:
            type_of(operand, tensors)
            return fn
        case Call(fn, (operand,)) if fn in BITCASTS:
            kind = type_of(operand, tensors)
            if is_weak(kind) or kind == "bool" or TTYPES[kind].bits != TTYPES[BITCASTS[fn]].bits:
                raise TypeError(f"{kind} has other bits than {BITCASTS[fn]} in {text_of(expr)}")
            return BITCASTS[fn]
        case Call(fn, args) if fn == WORD:
            return _word(expr, args, tensors)
        case Call(fn, args) if fn in DOTS:
            if [type_of(arg, tensors) for arg in args] != [WORD_TTYPE, WORD_TTYPE]:
                raise TypeError(f"{fn} takes two words, of type {WORD_TTYPE}: {text_of(expr)}")
            return DOTS[fn].accumulator
        case Call(fn, args):
            return _call(expr, fn, args, tensors)
    raise AssertionError(expr)


def _word(expr: Expr, args: tuple[Expr, ...], tensors: Mapping[str, str]) -> str:
    kinds = {type_of(arg, tensors) for arg in args}
    bits = sum(0 if is_weak(kind) else TTYPES[kind].bits for kind in kinds) * len(args)
    if len(kinds) != 1 or bits != TTYPES[WORD_TTYPE].bits:
        raise TypeError(f"elements of one type that fill {WORD_TTYPE} are expected in {text_of(expr)}")
    return WORD_TTYPE


def _call(expr: Expr, fn: str, args: tuple[Expr, ...], tensors: Mapping[str, str]) -> str:
    function = FUNCTIONS.get(fn)
    if function is None:
        raise TypeError(f"unknown function {fn} in {text_of(expr)}")
    if len(args) != function.arity:
        raise TypeError(f"{fn} takes {function.arity} arguments: {text_of(expr)}")
    kind = _check(expr, args, function.takes, tensors)
    return "bool" if function.returns == "bool" else kind


def _check(expr: Expr, args: tuple[Expr, ...], takes: str, tensors: Mapping[str, str]) -> str:
    kind = type_of(args[0], tensors)
    for arg in args[1:]:
        kind = _unify(kind, type_of(arg, tensors), expr)
    accepted = _KINDS[takes] | ({"int"} if is_weak(kind) and takes == "float" else set())
    if _kind(kind) not in accepted:
        raise TypeError(f"{kind} where {takes} is expected in {text_of(expr)}")
    return kind
