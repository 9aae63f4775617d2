"""Kernels as C++: their signature, and the text of each step in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.codegen.gpu.kernel_ir import (
    Barrier,
    Commit,
    Copy,
    Declare,
    Fence,
    Fill,
    For,
    If,
    KernelIR,
    Launch,
    Let,
    Step,
    Tile,
    Units,
    Wait,
)
from tilec.codegen.gpu.kernel_names import TURN, UNIT
from tilec.codegen.gpu.print.c_text import storage_type
from tilec.codegen.gpu.print.compute import compute
from tilec.codegen.gpu.print.kernel_state import KernelState, declaration
from tilec.codegen.gpu.print.loop_text import pragma
from tilec.codegen.gpu.print.moves import fill, move
from tilec.codegen.gpu.print.spread_loops import numbered
from tilec.codegen.gpu.ranges import inside, of_body, of_threads
from tilec.ir.expr import Binary, Const, Expr, Var
from tilec.ir.known_ranges import KnownRanges


@dataclass(frozen=True)
class KernelText:
    """The text of a `kernel`, a function that takes the program's symbols behind its buffers. `functions` are what it
    calls beyond tile.h, by name."""

    symbol: str
    text: str
    kernel: KernelIR
    functions: Mapping[str, str]

    @property
    def launch(self) -> Launch:
        """How it is started."""
        return self.kernel.launched


def print_kernel(kernel: KernelIR, symbol: str, ranges: KnownRanges) -> KernelText:
    """The text of a kernel; `ranges` are those of its symbols."""
    state = KernelState(kernel)
    for parameter in kernel.parameters:
        state.names[parameter.name]
    _body(state, kernel.body, of_body(kernel, ranges))
    text = f"{_head(state, symbol, of_threads(kernel, ranges))}{state.lines.text}}}\n"
    return KernelText(symbol, text, kernel, state.functions)


def _head(state: KernelState, symbol: str, ranges: KnownRanges) -> str:
    """The signature with the threads of a block and the blocks that share a core, and where a thread stands."""
    kernel, names, launch = state.kernel, state.names, state.kernel.launched
    constant = {b.name: "" if b.name in kernel.outputs else "const " for b in kernel.parameters}
    arguments = [
        f"{constant[b.name]}{storage_type(b.ttype)}* __restrict__ {names[b.name]}" for b in kernel.parameters
    ] + [f"int {names[each]}" for each in kernel.symbols]
    lines = [
        f"// {kernel.name}: {launch.threads} threads a block",
        f"T_KERNEL void T_BOUNDS({launch.threads}, {launch.resident}) {symbol}(",
        *(f"    {each}{',' if number < len(arguments) - 1 else ') {'}" for number, each in enumerate(arguments)),
        "  SMEM(smem);",
        "  const int tid = tid_;",
    ]
    if launch.lanes > 1:
        lines.append(f"  const int lane = tid % {launch.lanes}, unit = tid / {launch.lanes};")
    else:
        lines.append("  const int unit = tid;")
    names.assign({"#block": "bid_"})
    lines += [f"  {line}" for line in numbered(state, kernel.nest, Var("#block"), launch.grid, ranges)]
    return "\n".join(lines) + "\n"


def _body(state: KernelState, body: Sequence[Step], ranges: KnownRanges) -> None:
    for step in body:
        _step(state, step, ranges)


def _step(state: KernelState, step: Step, ranges: KnownRanges) -> None:
    match step:
        case Declare():
            state.lines.add(declaration(state, step, ranges))
        case Fill():
            fill(state, step, ranges)
        case Copy():
            move(state, step, ranges)
        case Commit():
            state.lines.add("t_commit_copies();")
        case Wait(left):
            state.lines.add(f"t_wait_copies<{left}>();")
        case Fence():
            state.lines.add("t_publish();")
        case Barrier():
            state.lines.add("t_barrier();")
        case Tile():
            compute(state, step, ranges, lambda: _body(state, step.meanwhile, ranges))
        case For(variable, extent, body, unroll):
            name = state.names.bind(variable)
            head = f"for (int {name} = 0; {name} < {state.text(extent, ranges)}; ++{name})"
            with state.nested([f"{pragma(unroll)}{head}"]):
                _body(state, body, inside(step, ranges))
        case If(variable, end, body):
            with state.nested([f"if ({state.names[variable]} < {state.text(end, ranges)})"]):
                _body(state, body, inside(step, ranges))
        case Let(variable, value, body):
            with state.nested([""]):
                state.lines.add(f"const int {state.names.bind(variable)} = {state.text(value, ranges)};")
                _body(state, body, inside(step, ranges))
        case Units():
            _units(state, step, ranges)


def _units(state: KernelState, step: Units, ranges: KnownRanges) -> None:
    """A nest of loops of which each unit takes its iterations."""
    inner, units = inside(step, ranges), state.kernel.launched.units
    which: Expr = UNIT if step.first == Const(0) else Binary("+", step.first, UNIT)
    head = f"if (unit < {step.count})" if step.take == "first" and step.count != units else ""
    if step.take == "turns":
        which, name = TURN, state.names.bind(TURN.name)
        head = f"for (int {name} = unit; {name} < {state.text(step.total, ranges)}; {name} += {units})"
    with state.nested([head]):
        for line in numbered(state, step.nest, which, step.total, inner):
            state.lines.add(line)
        _body(state, step.body, inner)
