"""Rewriting the tiles of a kernel one by one, each in the ranges of the variables around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tilec.codegen.cpu.kernel_ir import For, If, KernelIR, ParallelNest, Step, Tile
from tilec.codegen.cpu.simplify_ranges import extend_ranges, simplify_in_ranges
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, Var, as_expr, constant_value
from tilec.ir.known_ranges import Ranges

Rewrite = Callable[[Tile, Ranges], Sequence[Step]]
"""The steps that take the place of a tile, in the ranges of loop variables that take more than one value."""

Tasks = Mapping[str, tuple[Expr, Expr]]
"""Variable of a task loop -> its least and greatest value."""

_NO_SYMBOLS: Ranges = {}


def rewrite_tiles(kernel: KernelIR, rewrite: Rewrite, symbols: Ranges = _NO_SYMBOLS) -> KernelIR:
    """The kernel with the steps of `rewrite` in place of every tile of its nests, in the ranges of its symbols."""
    return replace(kernel, nests=tuple(_nest(nest, rewrite, symbols) for nest in kernel.nests))


def _nest(nest: ParallelNest, rewrite: Rewrite, symbols: Ranges) -> ParallelNest:
    tasks = {name: (Const(0), simplify(Binary("-", as_expr(extent), Const(1)))) for name, extent in nest.spread}
    return replace(nest, body=_steps(nest.body, tasks, symbols, rewrite))


def _steps(steps: Sequence[Step], tasks: Tasks, loops: Ranges, rewrite: Rewrite) -> tuple[Step, ...]:
    result: list[Step] = []
    for step in steps:
        match step:
            case For(variable, lo, hi, body):
                inside = {**loops, **_loop(variable, lo, hi, _ranges(tasks, loops))}
                result.append(replace(step, body=_steps(body, tasks, inside, rewrite)))
            case If(condition, yes, no):
                below, above = _versions(condition, tasks)
                yes, no = _steps(yes, below, loops, rewrite), _steps(no, above, loops, rewrite)
                result.append(replace(step, yes=yes, no=no))
            case Tile():
                result += rewrite(step, _ranges(tasks, loops))
            case _:
                result.append(step)
    return tuple(result)


def _loop(variable: str, lo: Expr, hi: Expr, ranges: Ranges) -> Ranges:
    """The range of a loop variable; none for one that takes a single value, for it occurs nowhere."""
    last = simplify_in_ranges(Binary("-", hi, Const(1)), ranges)
    return {} if last == lo else {variable: (lo, last)}


def _versions(condition: Expr, tasks: Tasks) -> tuple[Tasks, Tasks]:
    """The values of task variables in the branches between versions: up to a value of one of them, and beyond."""
    match condition:
        case Binary("<=", Var(name), last) if name in tasks:
            first, most = tasks[name]
            if constant_value(last) is None and constant_value(most) is not None:
                return tasks, tasks
            return {**tasks, name: (first, last)}, {**tasks, name: (simplify(Binary("+", last, Const(1))), most)}
    return tasks, tasks


def _ranges(tasks: Tasks, loops: Ranges) -> Ranges:
    several = {name: ends for name, ends in tasks.items() if not _at_most_one(*ends)}
    return extend_ranges(several, loops)


def _at_most_one(first: Expr, last: Expr) -> bool:
    """Whether a variable takes a single value, for which it occurs nowhere, or none."""
    difference = constant_value(simplify(Binary("-", last, first)))
    return difference is not None and difference <= 0
