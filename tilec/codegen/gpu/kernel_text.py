"""Kernel IR of GPUs as text for people: the launch, then one step a line with the decisions about it.

grid     128 blocks of 8 units of 32 lanes, 2 resident, 41984 bytes of shared memory, 352 of registers
for k1_smem in 12, 2 stages:
  wait     but 0 groups
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tilec.codegen.gpu.fragments import Fragment
from tilec.codegen.gpu.kernel_ir import (
    WHOLE,
    Barrier,
    Commit,
    Copy,
    Declare,
    Fence,
    Fill,
    For,
    If,
    KernelIR,
    Let,
    Nested,
    Spread,
    Step,
    Tile,
    Units,
    Unroll,
    Wait,
)
from tilec.codegen.gpu.lanes import LaneMap
from tilec.ir.expr import Const, Expr
from tilec.ir.program import Allocate, ComputeTile
from tilec.ir.program_text import interval_text, statement_text
from tilec.ir.text import text_of


def kernel_text(kernel: KernelIR) -> str:
    """The whole kernel."""
    head = f"kernel   {kernel.name}({', '.join(kernel.symbols)}), blocks are {_nest(kernel.nest)}"
    launch = kernel.launch
    lines = [head] if launch is None else [
        head,
        f"grid     {text_of(launch.grid)} blocks of {launch.units} units of {launch.lanes} lanes, {launch.resident} "
        f"resident, {text_of(launch.shared_bytes)} bytes of shared memory, {launch.registers} of registers",
    ]  # fmt: skip
    lines += [f"fast     {', '.join(sorted(kernel.fast))}"] if kernel.fast else []
    return "\n".join([*lines, *_lines(kernel, kernel.body, "")]) + "\n"


def step_text(kernel: KernelIR, step: Step) -> str:
    """A step on one line; one with a body without it."""
    match step:
        case Declare(buffer, copy):
            stage = f", copy {text_of(copy)}" if copy != Const(0) else ""
            return statement_text(Allocate(buffer)) + stage + _lanes(kernel.held.get(buffer.name, ()))
        case Fill(buffer, value, vector, _, active):
            return f"fill     {buffer.name} with {text_of(Const(value))}{_vector(vector)}{_where(active)}"
        case Copy():
            return _copy(step)
        case Commit():
            return "commit"
        case Wait(left):
            return f"wait     but {left} groups"
        case Fence():
            return "fence"
        case Barrier():
            return "barrier"
        case Tile():
            operands = tuple((tensor, buffer.name) for tensor, buffer in step.operands)
            unit = step.matrix.unit.name if step.matrix is not None else ""
            tile = ComputeTile(step.expr, step.box, step.target.name, operands, step.accumulate, unit)
            return statement_text(tile) + _lanes(step.lanes) + _points(step) + _where(step.active)
        case For(variable, extent, _, unroll, stages):
            pipelined = f", {stages} stages" if stages > 1 else ""
            return f"for {variable} in {text_of(extent)}{pipelined}{_unrolled(unroll)}:"
        case If(variable, end):
            return f"if {variable} < {text_of(end)}:"
        case Let(variable, value):
            return f"let {variable} = {text_of(value)}:"
        case Units(nest, _, _, count, take):
            how = {"turns": "take turns for", "first": f"0:{count} take", "together": f"0:{count} of all take"}[take]
            return f"units {how} {_nest(nest)}:"


def _points(step: Tile) -> str:
    """What a lane does together, in order: `2 x 4 instructions of rows and columns`, or `64 points together` with
    operands `ahead`."""
    matrix, points = step.matrix, prod(step.together.values())
    if matrix is not None:
        loads = [each.load if isinstance(each, Fragment) else "memory" for each in matrix.factors]
        factors = f" of {loads[0]} and {loads[1]}" if loads else ""
        return f", {matrix.down} x {matrix.across} instructions{factors}{_unrolled(matrix.unroll)}"
    ahead = "".join(f", {each.access.tensor}{_vector(each.vector, '')} ahead" for each in step.ahead)
    return f"{f', {points} points together' if points > 1 else ''}{ahead}{_vector(step.vector)}"


def _copy(step: Copy) -> str:
    upper, lower = step.upper.name, step.lower.name
    what, ends = (f"{upper} from {lower}" if step.up else f"{upper} to {lower}"), (step.lo, step.hi)
    if ends != (step.upper.lo, step.upper.hi):
        what += f"[{', '.join(interval_text(lo, hi) for lo, hi in zip(*ends, strict=True))}]"
    fill = f", {text_of(Const(step.fill))} outside" if step.fill is not None else ""
    later = ", arrives later" if step.arrival == "later" else ""
    return f"copy     {what}{fill}{_vector(step.vector)}{_unrolled(step.unroll)}{later}{_where(step.active)}"


def _lines(kernel: KernelIR, body: Sequence[Step], indent: str) -> Iterator[str]:
    for step in body:
        yield indent + step_text(kernel, step)
        if isinstance(step, Nested):
            yield from _lines(kernel, step.body, indent + "  ")
        elif isinstance(step, Tile) and step.meanwhile:
            yield f"{indent}  meanwhile:"
            yield from _lines(kernel, step.meanwhile, indent + "    ")


def _nest(nest: Sequence[Spread]) -> str:
    loops = (f"{s.variable} in {text_of(s.extent)}" + (f" by {s.stripe}" if s.stripe > 1 else "") for s in nest)
    return ", ".join(loops) or "one"


def _vector(vector: int, comma: str = ",") -> str:
    return f"{comma} {vector} at once" if vector > 1 else ""


def _unrolled(unroll: Unroll) -> str:
    return "" if unroll is None else ", unrolled" if unroll == WHOLE else f", unrolled by {unroll}"


def _lanes(lanes: LaneMap) -> str:
    def axis(along: str | int, vector: int, count: int, step: int) -> str:
        return f"{along}: {count}{f'@{step}' if step > 1 else ''}{f' v{vector}' if vector > 1 else ''}"

    return f", lanes {', '.join(axis(x.along, x.vector, x.count, x.step) for x in lanes)}" if lanes else ""


def _where(active: Expr | None) -> str:
    return f", where {text_of(active)}" if active is not None else ""
