"""Integer expressions over loop variables in TIR, each computed once inside the loops that it depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tvm import tirx

from tilec.codegen.cpu.emit.scalar_functions import PRINTERS
from tilec.codegen.cpu.emit.vector_ops import PrimExpr, bind, constant, int64
from tilec.codegen.cpu.extents import Extent
from tilec.ir.algebra import bounds_of
from tilec.ir.expr import Binary, Call, Const, Expr, Var

ARITHMETIC = {"+": tirx.Add, "-": tirx.Sub, "*": tirx.Mul}
"""Indices never overflow, which LLVM may know."""


def not_negative(expr: Expr) -> bool:
    """Whether an expression over loop variables and dimensions, all at least 0, is never negative."""
    low = bounds_of(expr)[0]
    return low is not None and low >= 0


def divided(op: str, value: PrimExpr, divisor: int, lanes: int) -> PrimExpr:
    """`//` or `%` of an integer that is at least 0 by a positive number."""
    node = tirx.Div if op == "//" else tirx.Mod
    return node(value, constant(divisor, "int64", lanes))


def divided_by_size(op: str, value: PrimExpr, divisor: PrimExpr, lanes: int = 1) -> PrimExpr:
    """`//` or `%` of integers that are at least 0; 0 where the divisor is 0, as for all integers."""
    node = tirx.Div if op == "//" else tirx.Mod
    whole = node(value, tirx.Max(divisor, constant(1, "int64", lanes)))
    nothing = constant(0, "int64", lanes)
    return tirx.Select(tirx.EQ(divisor, nothing), nothing, whole)


class Indices:
    """Prints integer expressions at the position of the IR builder and remembers them while their loop is open."""

    def __init__(self, variables: Mapping[str, PrimExpr]) -> None:
        self.variables: dict[str, PrimExpr] = dict(variables)
        self._scopes: list[dict[Expr, PrimExpr]] = [{}]

    @contextmanager
    def loop(self, name: str, value: PrimExpr) -> Iterator[None]:
        """Inside a loop over `name`."""
        self.variables[name] = value
        with self.scope():
            yield
        del self.variables[name]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Inside a branch."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    def get(self, expr: Expr) -> PrimExpr:
        """The value of an integer expression or of a comparison."""
        match expr:
            case Const(bool() as value):
                return constant(value, "bool")
            case Const(value):
                return int64(int(value))
            case Var(name):
                return self.variables[name]
        for scope in self._scopes:
            if expr in scope:
                return scope[expr]
        made = self._scopes[-1][expr] = bind(self._make(expr))
        return made

    def condition(self, expr: Expr) -> PrimExpr:
        """Whether an expression holds, which a size may say as well: one that is not 0."""
        value = self.get(expr)
        return value if str(value.ty) == "bool" else tirx.NE(value, int64(0))

    def number(self, expr: Expr) -> PrimExpr:
        """The value of an expression as an integer: 1 for a condition that holds."""
        value = self.get(expr)
        return tirx.Cast("int64", value) if str(value.ty) == "bool" else value

    def extent(self, extent: Extent) -> PrimExpr:
        """The value of an extent."""
        return int64(extent) if isinstance(extent, int) else self.get(extent)

    def _make(self, expr: Expr) -> PrimExpr:
        match expr:
            case Binary("//" | "%" as op, left, Const(int() as divisor)) if divisor > 0 and not_negative(left):
                return divided(op, self.number(left), divisor, 1)
            case Binary("//" | "%" as op, left, right) if not_negative(left) and not_negative(right):
                return divided_by_size(op, self.number(left), self.number(right))
            case Binary("and" | "or" as op, left, right):
                return PRINTERS[op]("bool", 1, self.condition(left), self.condition(right))
            case Binary("+" | "-" | "*" as op, left, right):
                return ARITHMETIC[op](self.number(left), self.number(right))
            case Binary(op, left, right):
                return PRINTERS[op]("int64", 1, self.number(left), self.number(right))
            case Call("where", (condition, yes, no)):
                return tirx.Select(self.condition(condition), self.number(yes), self.number(no))
            case Call("not", (operand,)):
                return tirx.Not(self.condition(operand))
            case Call(fn, args):
                return PRINTERS[fn]("int64", 1, *map(self.number, args))
        raise AssertionError(expr)
