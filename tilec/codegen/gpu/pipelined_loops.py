"""Loops whose loads are asynchronous (cp.async, PTX ISA 9.7.9.25.3): copies of later iterations are on their way while
one is computed.

    for (n = 0; n < stages - 1; ++n) { begin the loads of iteration n; t_commit_copies(); }
    for (k = 0; k < extent; ++k) {
      t_wait_copies<stages - 2>();  those of iteration k have arrived
      t_barrier();                  all threads see them, and have read those of iteration k - 1
      if (k + stages - 1 < extent) begin the loads of that iteration, where those of k - 1 lie
      t_commit_copies();
      ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from tilec.codegen.gpu.copies import Copy
from tilec.codegen.gpu.kernel_state import KernelState, shared_pointer, with_ranges
from tilec.codegen.gpu.moves import move
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, Var, constant_value, substitute
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.lifetimes import is_asynchronous
from tilec.ir.program import Allocate, Buffer, LoadTiles, Loop


@dataclass(frozen=True)
class Pipeline:
    """The asynchronous loads of a loop, each into one of `stages` copies of its target."""

    loop: Loop
    loads: tuple[LoadTiles, ...]
    targets: Mapping[str, Buffer]
    stages: int

    @classmethod
    def of(cls, loop: Loop) -> Self | None:
        """That of a loop, if it has any."""
        loads = tuple(each for each in loop.body if isinstance(each, LoadTiles) and is_asynchronous(each))
        names = {load.target for load in loads}
        targets = {s.buffer.name: s.buffer for s in loop.body if isinstance(s, Allocate) and s.buffer.name in names}
        return cls(loop, loads, targets, max(load.stages for load in loads)) if loads else None

    def copy_of(self, iteration: Expr) -> Expr:
        """The copy of targets that an iteration uses."""
        return Binary("%", iteration, Const(self.stages))


def begin_first(state: KernelState, pipeline: Pipeline, ranges: KnownRanges) -> None:
    """The loads of the iterations that the first one does not begin itself."""
    count, extent = pipeline.stages - 1, simplify(pipeline.loop.extent, ranges)
    number = state.names.fresh("n")
    with state.nested([f"for (int {number} = 0; {number} < {count}; ++{number})"]):
        trips = constant_value(extent)
        sure = trips is not None and trips >= count
        _begin(state, pipeline, number, Const(count) if sure else extent, sure, ranges)


def begin_next(state: KernelState, pipeline: Pipeline, ranges: KnownRanges) -> None:
    """The loads of a later iteration, whose copies the one before has read."""
    number = state.names.fresh("next")
    ahead = Binary("+", Var(pipeline.loop.variable), Const(pipeline.stages - 1))
    with state.nested([""]):
        state.lines.add(f"const int {number} = {state.text(ahead, ranges)};")
        _begin(state, pipeline, number, simplify(pipeline.loop.extent, ranges), False, ranges)


def _begin(state: KernelState, pipeline: Pipeline, number: str, end: Expr, sure: bool, ranges: KnownRanges) -> None:
    """The loads of the iteration of a number below an end, if it is."""
    iteration = Var(f"#{number}")
    state.names.assign({iteration.name: number})
    inner = with_ranges(ranges, {iteration.name: end})
    with state.nested([] if sure else [f"if ({number} < {state.text(end, ranges)})"]):
        for load in pipeline.loads:
            target = _in(pipeline.targets[load.target], pipeline.loop.variable, iteration)
            state.names.assign({target.name: state.names.fresh("to")})
            state.lines.add(shared_pointer(state, target, pipeline.copy_of(iteration), inner))
            source = state.buffers[load.source]
            move(state, Copy(target, source, target.lo, target.hi, True, load.fill, asynchronous=True), inner)
    state.lines.add("t_commit_copies();")


def _in(buffer: Buffer, variable: str, iteration: Var) -> Buffer:
    """A buffer in another iteration of its loop."""
    lo, hi = (tuple(substitute(end, {variable: iteration}) for end in ends) for ends in (buffer.lo, buffer.hi))
    return replace(buffer, name=f"{buffer.name}{iteration.name}", lo=lo, hi=hi)
