"""Text of tensor expressions: one canonical printed form, valid Python, parsed with `ast`, never evaluated.

    C[m, n] = sum(k, A[m, k] * B[k, n])

`sum`, `prod`, `max` and `min` reduce over the iterators named first; the elementwise functions are `maximum` and
`minimum`. `parse_expr(text_of(e)) == e` for every expression that was read or simplified.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from math import inf, isinf, isnan, nan

from tilec.ir.expr import (
    COMPARISONS,
    NEUTRAL,
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Reduce,
    Scalar,
    TensorExpr,
    Var,
    as_expr,
)

_ARITHMETIC: dict[str, type[ast.operator]] = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.Div,
    "//": ast.FloorDiv,
    "%": ast.Mod,
}
_COMPARE: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt,
    "<=": ast.LtE,
    ">": ast.Gt,
    ">=": ast.GtE,
    "==": ast.Eq,
    "!=": ast.NotEq,
}
_BOOLEAN: dict[str, type[ast.boolop]] = {"and": ast.And, "or": ast.Or}
_SYMBOL = {v: k for table in (_ARITHMETIC, _COMPARE, _BOOLEAN) for k, v in table.items()}
_NAMED = {"inf": inf, "nan": nan}


def _refuse(node: ast.AST) -> ValueError:
    return ValueError(f"column {getattr(node, 'col_offset', 0)}: not part of the language: {ast.unparse(node)}")


def _read(node: ast.expr) -> Expr:
    match node:
        case ast.Name(id=name):
            return Const(_NAMED[name]) if name in _NAMED else Var(name)
        case ast.Constant(value=bool() | int() | float() as value):
            return Const(value)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            operand = _read(inner)
            if isinstance(operand, Const) and not isinstance(operand.value, bool):
                return Const(-operand.value)
            return Call("neg", (operand,))
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return Call("not", (_read(inner),))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SYMBOL:
            return Binary(_SYMBOL[type(op)], _read(left), _read(right))
        case ast.BoolOp(op=op, values=values):
            return _fold(_SYMBOL[type(op)], [_read(v) for v in values])
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            chain = [_read(x) for x in (left, *comparators)]
            if not all(type(op) in _SYMBOL for op in ops):
                raise _refuse(node)
            pairs = zip(chain, ops, chain[1:], strict=False)
            return _fold("and", [Binary(_SYMBOL[type(op)], a, b) for a, op, b in pairs])
        case ast.Subscript(value=ast.Name(id=name), slice=index):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            return Access(name, tuple(_read(p) for p in parts))
        case ast.Call(func=ast.Name(id=name), args=[*args], keywords=[]):
            terms = [_read(a) for a in args]
            if name not in NEUTRAL:
                return Call(name, tuple(terms))
            heads = tuple(v.name for v in terms[:-1] if isinstance(v, Var))
            if not heads or len(heads) != len(terms) - 1:
                raise _refuse(node)
            return Reduce(name, heads, terms[-1])
        case _:
            raise _refuse(node)


def _fold(op: str, values: list[Expr]) -> Expr:
    result = values[0]
    for value in values[1:]:
        result = Binary(op, result, value)
    return result


def _spine(op: str, expr: Expr) -> list[Expr]:
    if isinstance(expr, Binary) and expr.op == op:
        return [*_spine(op, expr.left), expr.right]
    return [expr]


def _number(value: Scalar) -> ast.expr:
    if isinstance(value, float) and isnan(value):
        return ast.Name("nan")
    if isinstance(value, float) and isinf(value):
        name = ast.Name("inf")
        return name if value > 0 else ast.UnaryOp(ast.USub(), name)
    if not isinstance(value, bool) and (value < 0 or str(value).startswith("-")):
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def _write(expr: Expr) -> ast.expr:
    match expr:
        case Var(name):
            return ast.Name(name)
        case Const(value):
            return _number(value)
        case Binary(op, left, right) if op in _BOOLEAN:
            return ast.BoolOp(_BOOLEAN[op](), [_write(e) for e in (*_spine(op, left), right)])
        case Binary(op, left, right) if op in COMPARISONS:
            return ast.Compare(_write(left), [_COMPARE[op]()], [_write(right)])
        case Binary(op, left, right):
            return ast.BinOp(_write(left), _ARITHMETIC[op](), _write(right))
        case Call("neg", (operand,)):
            return ast.UnaryOp(ast.USub(), _write(operand))
        case Call("not", (operand,)):
            return ast.UnaryOp(ast.Not(), _write(operand))
        case Call(fn, args):
            return ast.Call(ast.Name(fn), [_write(a) for a in args], [])
        case Access(tensor, index):
            parts = [_write(i) for i in index]
            inner = parts[0] if len(parts) == 1 else ast.Tuple(parts)
            return ast.Subscript(ast.Name(tensor), inner)
        case Reduce(op, iterators, body):
            return ast.Call(ast.Name(op), [*(ast.Name(i) for i in iterators), _write(body)], [])


@lru_cache(maxsize=65536)
def text_of(expr: Expr) -> str:
    """The canonical text of an expression."""
    return ast.unparse(_write(expr))


def tensor_text(expr: TensorExpr) -> str:
    """The canonical text `C[m, n] = ...` of a tensor expression, without the extents."""
    output = Access(expr.tensor, tuple(Var(i) for i in expr.spatial))
    return f"{text_of(output)} = {text_of(expr.body)}"


def parse_expr(text: str) -> Expr:
    """Parse an expression. Raises ValueError with the column of the first part that is not in the language."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"column {error.offset}: {error.msg}: {text}") from None
    return _read(tree.body)


def parse_tensor(text: str, extents: Mapping[str, int | Expr]) -> TensorExpr:
    """Parse `C[m, n] = sum(k, ...)`; `extents` gives every iterator's extent. Raises ValueError."""
    try:
        tree = ast.parse(text.strip())
    except SyntaxError as error:
        raise ValueError(f"column {error.offset}: {error.msg}: {text}") from None
    match tree.body:
        case [ast.Assign(targets=[target], value=value)]:
            output, body = _read(target), _read(value)
        case _:
            raise ValueError(f"not an assignment: {text}")
    if not isinstance(output, Access) or not all(isinstance(i, Var) for i in output.index):
        raise ValueError(f"left side must be tensor[iterators]: {text}")
    spatial = tuple(i.name for i in output.index if isinstance(i, Var))
    reduce = body.iterators if isinstance(body, Reduce) else ()
    missing = [i for i in spatial + reduce if i not in extents]
    if missing:
        raise ValueError(f"no extent for iterator {', '.join(missing)}: {text}")
    return TensorExpr(output.tensor, spatial, reduce, tuple(as_expr(extents[i]) for i in spatial + reduce), body)
