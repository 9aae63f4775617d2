"""The function that computes the numbers of a model with symbols: sizes to extents, places, tasks (B04, B05).

    void tilec_numbers(int64_t* numbers, int64_t part)

It reads symbols and the numbers of earlier parts, and writes those of its part.
"""

from __future__ import annotations

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.codegen.cpu.compile.compile_tir import PRINTED
from tilec.codegen.cpu.emit.indices import Indices
from tilec.codegen.cpu.emit.kernel_function import PrimExpr, PrimFunc
from tilec.codegen.cpu.emit.vector_ops import bind, int64
from tilec.codegen.shape_program import Numbers, position_of
from tilec.ir.expr import Access, Expr, Var, rebuild, walk

SYMBOL = "tilec_numbers"


def numbers_function(numbers: Numbers) -> PrimFunc:
    """The TIR of the function for these numbers."""
    count = len(numbers.symbols)
    with IRBuilder() as builder, I.prim_func(s_tir=True):
        I.func_name(SYMBOL)
        I.func_attr({"tirx.noalias": True, "global_symbol": SYMBOL, PRINTED: True})
        pointer, part = I.arg("numbers", I.ptr("int64")), I.arg("part", I.int64())
        values = I.decl_buffer((int64(max(1, len(numbers.exprs))),), "int64", data=pointer)
        for chosen in sorted(set(numbers.parts[count:])):
            with I.If(tirx.EQ(part, int64(chosen))), I.Then():
                _part(numbers, chosen, values)
    return builder.get()


def _part(numbers: Numbers, part: int, values: PrimExpr) -> None:
    """Compute and store the numbers of a part.

    Later numbers read it back: TVM puts what a variable is bound to in the place of each use while it makes LLVM text,
    which takes forever for places that are ends of others (measured: 900 numbers, 3.8 s in place of minutes).
    """
    known = {name: bind(values[int64(n)]) for n, name in enumerate(numbers.symbols) if numbers.parts[n] <= part}
    indices = Indices(known)
    for position, expr in enumerate(numbers.exprs):
        if position < len(numbers.symbols) or numbers.parts[position] != part:
            continue
        named = _with_references_named(expr)
        for reference in _references(expr):
            if _name(reference) not in indices.variables:
                indices.variables[_name(reference)] = bind(values[int64(reference)])
        I.buffer_store(values, indices.number(named), [int64(position)])
        indices.variables[_name(position)] = bind(values[int64(position)])


def _references(expr: Expr) -> list[int]:
    """Positions of the numbers that an expression refers to."""
    return [position_of(part) for part in walk(expr) if isinstance(part, Access)]


def _with_references_named(expr: Expr) -> Expr:
    """The expression with a variable for each number that it refers to."""
    return Var(_name(position_of(expr))) if isinstance(expr, Access) else rebuild(expr, _with_references_named)


def _name(position: int) -> str:
    """The variable of a number; no symbol is called so."""
    return f"numbers[{position}]"
