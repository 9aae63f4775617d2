"""A tile program at one size: its symbols replaced by integers, its statements as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilec.ir.algebra import simplify
from tilec.ir.bind import simplify_reads
from tilec.ir.expr import Const, Expr, TensorExpr, substitute
from tilec.ir.program import Allocate, Buffer, ComputeTile, Loop, Program, Statement, StoreTiles

Values = Mapping[str, Expr]


def bind_program(program: Program, sizes: Mapping[str, int]) -> Program:
    """The program for these sizes of all its symbols."""
    if not program.symbols:
        return program
    values: dict[str, Expr] = {symbol: Const(size) for symbol, size in sizes.items()}
    return replace(
        program,
        symbols=(),
        parameters=tuple(_buffer(parameter, values) for parameter in program.parameters),
        body=tuple(_statement(statement, values) for statement in program.body),
    )


def _statement(statement: Statement, values: Values) -> Statement:
    match statement:
        case Allocate(buffer):
            return Allocate(_buffer(buffer, values))
        case ComputeTile(expr, box):
            bound = tuple((i, _expr(lo, values), _expr(hi, values)) for i, lo, hi in box)
            return replace(statement, expr=_tensor_expr(expr, values), box=bound)
        case StoreTiles():
            return replace(statement, lo=_exprs(statement.lo, values), hi=_exprs(statement.hi, values))
        case Loop():
            body = tuple(_statement(inner, values) for inner in statement.body)
            return replace(statement, extent=_expr(statement.extent, values), body=body)
        case _:
            return statement


def _buffer(buffer: Buffer, values: Values) -> Buffer:
    offset = None if buffer.offset is None else _expr(buffer.offset, values)
    lo, hi, shape = (_exprs(each, values) for each in (buffer.lo, buffer.hi, buffer.shape))
    return replace(buffer, lo=lo, hi=hi, shape=shape, offset=offset)


def _tensor_expr(expr: TensorExpr, values: Values) -> TensorExpr:
    return simplify_reads(replace(expr, extents=_exprs(expr.extents, values), body=substitute(expr.body, values)))


def _exprs(exprs: Sequence[Expr], values: Values) -> tuple[Expr, ...]:
    return tuple(_expr(expr, values) for expr in exprs)


def _expr(expr: Expr, values: Values) -> Expr:
    return simplify(substitute(expr, values))
