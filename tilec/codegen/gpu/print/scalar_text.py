"""Scalar bodies of tensor expressions as C++, with the meaning of `tilec.ir.scalars` (header: tile.h)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilec.codegen.gpu.print.c_text import literal, value_type
from tilec.ir.evaluate import literal_value
from tilec.ir.expr import COMPARISONS, Access, Binary, Call, Const, Expr, Var, walk
from tilec.ir.scalars import BITCASTS, is_weak, type_of
from tilec.ir.types import HALVES, TTYPES

_WRAPPING = {"+": "t_add", "-": "t_sub", "*": "t_mul", "//": "t_floordiv", "%": "t_floormod"}
_BITWISE = {"bitand": "&", "bitor": "|", "bitxor": "^"}
_WEAK = {"weak int": "i64", "weak float": "f32", "weak bool": "bool"}


@dataclass(frozen=True)
class Scalars:
    """How the leaves of a body print: types of tensors, the value of an access (in its computed type), and
    integer expressions of iterators; which functions of f32 are the `fast` ones."""

    types: Mapping[str, str]
    access: Callable[[Access, bool], str]
    index: Callable[[Expr], str]
    names: Mapping[Expr, str]
    fast: frozenset[str] = frozenset()

    def type_of(self, expr: Expr) -> str:
        """The tType of a body; of a literal alone the one that it has in C++."""
        kind = type_of(expr, self.types)
        return _WEAK[kind] if is_weak(kind) else kind

    def text(self, expr: Expr, ttype: str, guarded: bool = False) -> str:
        """A body as a value of the computed type of `ttype`, which it has or adopts. `guarded`: under a condition."""
        if expr in self.names:
            return self.names[expr]
        if is_index(expr):
            return self.index(expr) if TTYPES[ttype].kind == "bool" else f"(long long)({self.index(expr)})"
        match expr:
            case Const(value):
                return literal(value, ttype)
            case _ if not any(isinstance(part, Var | Access) for part in walk(expr)):
                return literal(literal_value(expr, ttype), ttype)
            case Access():
                return self.access(expr, guarded)
            case Binary(op, left, right):
                return self._binary(op, left, right, guarded)
            case Call("where", (condition, yes, no)):
                kind = self._common(yes, no, ttype)
                test = self.text(condition, "bool", guarded)
                return f"({test} ? {self.text(yes, kind, True)} : {self.text(no, kind, True)})"
            case Call(fn, (operand,)) if fn in TTYPES:
                kind = self.type_of(operand)
                text = self.text(operand, kind, guarded)
                computed = kind in HALVES and not isinstance(operand, Access)  # in f32, and not rounded yet
                return converted(text, "f32" if computed else kind, fn)
            case Call(fn, (operand,)) if fn in BITCASTS:
                kind = self.type_of(operand)
                return _bits(self.text(operand, kind, guarded), kind, BITCASTS[fn])
            case Call(fn, args):
                return self._call(fn, args, guarded, ttype)
        raise AssertionError(expr)

    def _common(self, left: Expr, right: Expr, wanted: str) -> str:
        """The type in which two operands meet."""
        kinds = [type_of(each, self.types) for each in (left, right)]
        strong = [kind for kind in kinds if not is_weak(kind)]
        if strong:
            return "f32" if strong[0] in HALVES else strong[0]
        return "f32" if "weak float" in kinds and TTYPES[wanted].kind != "float" else wanted

    def _binary(self, op: str, left: Expr, right: Expr, guarded: bool) -> str:
        if op in ("and", "or"):
            a, b = self.text(left, "bool", guarded), self.text(right, "bool", True)
            return f"({a} {'&&' if op == 'and' else '||'} {b})"
        kind = self._common(left, right, "i64")
        a, b = (self.text(each, kind, guarded) for each in (left, right))
        if op == "/" and op in self.fast and kind == "f32":
            return f"t_fast_div({a}, {b})"
        if op in COMPARISONS or TTYPES[kind].kind == "float":
            return f"({a} {op} {b})"
        return f"{_WRAPPING[op]}<{value_type(kind)}>({a}, {b})"

    def _call(self, fn: str, args: tuple[Expr, ...], guarded: bool, wanted: str) -> str:
        if fn == "not":
            return f"(!{self.text(args[0], 'bool', guarded)})"
        kind = self._common(args[0], args[-1], wanted)
        texts = [self.text(each, kind, guarded) for each in args]
        real, c_type = TTYPES[kind].kind == "float", value_type(kind)
        if fn == "neg":
            return f"(-{texts[0]})" if real else f"t_neg<{c_type}>({texts[0]})"
        if fn in _BITWISE:
            return f"({c_type})({texts[0]} {_BITWISE[fn]} {texts[1]})"
        if fn == "bitnot":
            return f"({c_type})(~{texts[0]})"
        if fn in ("maximum", "minimum"):
            return extremum(fn, kind, *texts)
        if not real:
            name = {"abs": "t_iabs", "pow": "t_ipow", "fmod": "t_ifmod", "truncdiv": "t_itruncdiv"}.get(fn, f"t_{fn}")
            return f"{name}<{c_type}>({', '.join(texts)})"
        return f"t_{'fast_' if fn in self.fast and kind == 'f32' else ''}{fn}({', '.join(texts)})"


_OF_INDICES = frozenset({"+", "-", "*", "//", "%", "and", "or", *COMPARISONS})


def is_index(expr: Expr) -> bool:
    """Whether an expression consists of iterators and integers, and of one iterator at least."""
    parts = list(walk(expr))
    return any(isinstance(part, Var) for part in parts) and all(
        isinstance(part, Var)
        or (isinstance(part, Const) and isinstance(part.value, int))
        or (isinstance(part, Binary) and part.op in _OF_INDICES)
        or (isinstance(part, Call) and part.fn in ("minimum", "maximum", "neg", "not"))
        for part in parts
    )


def extremum(fn: str, ttype: str, a: str, b: str) -> str:
    """The larger or the smaller of two values; NaN comes through."""
    name = "t_max" if fn in ("maximum", "max") else "t_min"
    return f"{name}({a}, {b})" if value_type(ttype) in ("float", "double") else f"{name}<{value_type(ttype)}>({a}, {b})"


def combined(reducer: str, ttype: str, a: str, b: str) -> str:
    """Two partial results of a reduction as one."""
    if reducer in ("max", "min"):
        return extremum(reducer, ttype, a, b)
    op = {"sum": "+", "prod": "*"}[reducer]
    if TTYPES[ttype].kind == "float":
        return f"{a} {op} {b}"
    return f"{_WRAPPING[op]}<{value_type(ttype)}>({a}, {b})"


def converted(text: str, source: str, target: str) -> str:
    """A cast of the language between computed types: floats truncate and saturate, a half is rounded."""
    if source == target:
        return text
    kind, from_float = TTYPES[target].kind, TTYPES[source].kind == "float"
    if target in HALVES:
        return f"t_round_{target}({text})" if source == "f32" else f"t_round_{target}((float){text})"
    if kind == "bool":
        return f"({text} != 0)"
    if from_float and kind != "float":
        low, high = (literal(end, target) for end in (-float("inf"), float("inf")))
        return f"t_saturated<{value_type(target)}>({text}, {low}, {high})"
    return text if value_type(source) == value_type(target) else f"(({value_type(target)}){text})"


def _bits(text: str, source: str, target: str) -> str:
    plain = f"t_{source}({text}).bits" if source in HALVES else text
    if target in HALVES:
        return f"t_f32({target}{{(unsigned short)({plain})}})"
    return f"t_bits<{value_type(target)}>({plain})"


def loaded(text: str, ttype: str) -> str:
    """An element of a buffer as a value."""
    return f"t_f32({text})" if ttype in HALVES else text


def stored(text: str, ttype: str) -> str:
    """A value as an element of a buffer."""
    return f"t_{ttype}({text})" if ttype in HALVES else text
