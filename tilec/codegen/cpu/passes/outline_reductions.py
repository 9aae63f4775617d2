"""Loops that reduce as functions of their own, where a task does anything else.

LLVM assigns registers for a whole function: what another loop of the task keeps there (hoisted offsets and masks of
gathers) pushes accumulators to the stack.  Measured: a stitched depthwise and pointwise convolution followed by a
shuffle 97 us in one function, 48 in three.  A call takes a few nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from tilec.codegen.cpu.kernel_ir import (
    CallFunction,
    For,
    Function,
    If,
    KernelIR,
    Step,
    Tile,
    memories_of,
    tiles,
)
from tilec.ir.expr import Expr, Var, variables


def outline_reductions(kernel: KernelIR) -> KernelIR:
    """The kernel with such loops as functions that it calls."""
    outliner = _Outliner(kernel)
    nests = tuple(
        replace(nest, body=outliner.steps(nest.body, (*kernel.symbols, *(name for name, _ in nest.spread))))
        for nest in kernel.nests
    )
    return replace(kernel, nests=nests, parts=tuple(outliner.parts))


class _Outliner:
    def __init__(self, kernel: KernelIR) -> None:
        self.parts: list[Function] = []
        self.symbols = kernel.symbols
        self.local = {memory.name for memory in kernel.memories if memory.kind == "local"}
        self.uses: dict[str, int] = {}
        for nest in kernel.nests:
            for name in memories_of(nest.body):
                if name in self.local:
                    self.uses[name] = self.uses.get(name, 0) + 1

    def steps(self, steps: Sequence[Step], scope: tuple[str, ...]) -> tuple[Step, ...]:
        """Steps inside loops over the variables of `scope`."""
        groups = [tuple(group) for _, group in groupby(steps, _loop)]
        result: list[Step] = []
        for group in groups:
            inner = tuple(self._inside(step, scope) for step in group)
            result += (self._run(inner, group, scope),) if len(groups) > 1 and self._apart(group) else inner
        return tuple(result)

    def _inside(self, step: Step, scope: tuple[str, ...]) -> Step:
        match step:
            case For(variable, lo, hi, body):
                return For(variable, lo, hi, self.steps(body, (*scope, variable)))
            case If(condition, yes, no):
                return If(condition, self.steps(yes, scope), self.steps(no, scope))
            case _:
                return step

    def _apart(self, group: Sequence[Step]) -> bool:
        """Whether steps are loops that reduce and share no register with others."""
        if not all(isinstance(step, For) for step in group):
            return False
        if not any(tile.reducer is not None for tile in tiles(tuple(group))):
            return False
        inside: dict[str, int] = {}
        for name in memories_of(group):
            inside[name] = inside.get(name, 0) + 1
        return all(count == self.uses.get(name, count) for name, count in inside.items())

    def _run(self, body: tuple[Step, ...], group: Sequence[Step], scope: tuple[str, ...]) -> CallFunction:
        """`body`, which `group` became, as a part."""
        fetched = (ahead.memory for tile in tiles(tuple(group)) for ahead in tile.ahead)
        names = dict.fromkeys((*memories_of(group), *fetched))
        arrays = tuple(name for name in names if name not in self.local)
        part = Function(f"part{len(self.parts)}", variables_of(group, scope, self.symbols), body, arrays)
        self.parts.append(part)
        return CallFunction(part.name, part.variables, tuple((name, 0) for name in arrays))


def variables_of(steps: Sequence[Step], scope: Sequence[str], symbols: Sequence[str]) -> tuple[str, ...]:
    """The variables of a scope that steps need, and all symbols, in order."""
    used = frozenset(symbols).union(*(variables(expr) for expr in _expressions(steps)))
    return tuple(name for name in scope if name in used)


def _loop(step: Step) -> object:
    """Ranges of one loop, which was cut into several, have one key; other steps one each."""
    return step.variable if isinstance(step, For) else id(step)


def _expressions(steps: Sequence[Step]) -> Iterator[Expr]:
    for step in steps:
        match step:
            case For(_, lo, hi, body):
                yield from (lo, hi)
                yield from _expressions(body)
            case If(condition, yes, no):
                yield condition
                yield from _expressions((*yes, *no))
            case Tile():
                yield from (*(dim.extent for dim in step.dims), step.value, step.target)
                for ahead in step.ahead:
                    yield from (ahead.first, *(Var(name) for name, _, _ in ahead.loops))
            case CallFunction():
                raise AssertionError(step)
