"""Tile programs to TIR functions: the CPU reader of the tile program (W31)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.codegen.cpu.compile import PRINTED
from tilec.codegen.cpu.indices import Indices
from tilec.codegen.cpu.kernel import Buffer, Operand, PrimFunc, Scratch, kernel_function
from tilec.codegen.cpu.memory import Memories, stored
from tilec.codegen.cpu.resolve import resolve
from tilec.codegen.cpu.target import CpuTarget
from tilec.codegen.cpu.tiles import emit_tile
from tilec.codegen.cpu.tree import Choose, Nest, Range, Step, Tile, Tree
from tilec.codegen.cpu.vectors import PrimExpr, bind, floor_parts, int64, register
from tilec.ir.program import Program


@dataclass(frozen=True, slots=True)
class Kernel:
    """A printed kernel: its function, how many tasks it has and the scratch bytes that a thread needs.

    The function's operands are the program's parameters, in order.
    """

    function: PrimFunc
    tasks: int
    scratch_bytes: int


def emit(program: Program, target: CpuTarget, symbol: str | None = None) -> Kernel:
    """The kernel of a program under a C symbol, by default the program's name.

    Raises UnsupportedError for sizes that are not bound and for statements that a core cannot run.
    """
    tree = resolve(program, target)
    operands = [Operand(m.name, stored(m.ttype), m.elements) for m in tree.memories if m.kind == "operand"]

    def body(buffers: Mapping[str, Buffer], scratch: Scratch, task: PrimExpr) -> None:
        memories = _memories(tree, buffers, scratch)
        _nests([nest for nest in tree.nests if nest.tasks], target, memories, task)

    function = kernel_function(symbol or tree.name, operands, body, tree.scratch_bytes)
    return Kernel(function.with_attr(PRINTED, True), tree.tasks, tree.scratch_bytes)


def emit_kernel(program: Program, target: CpuTarget) -> PrimFunc:
    """The TIR function of a program."""
    return emit(program, target).function


def _memories(tree: Tree, operands: Mapping[str, Buffer], scratch: Scratch) -> Memories:
    """TIR buffers for all memories. Those that share a place share a buffer: two would be taken as not aliased."""
    buffers: dict[str, Buffer] = dict(operands)
    places: dict[int, int] = {}
    for memory in tree.memories:
        if memory.kind == "scratch":
            places[memory.offset] = max(places.get(memory.offset, 0), memory.elements)
    made: dict[int, Buffer] = {}
    pieces: dict[tuple[str, int, int], Buffer] = {}
    for memory in tree.memories:
        for offset, lanes in memory.pieces:
            pieces[memory.name, offset, lanes] = register(stored(memory.ttype), lanes)
        if memory.kind == "scratch":
            if memory.offset not in made:
                made[memory.offset] = scratch.buffer(memory.offset, places[memory.offset], stored(memory.ttype))
            buffers[memory.name] = made[memory.offset]
    return Memories({m.name: m for m in tree.memories}, buffers, pieces)


def _nests(nests: Sequence[Nest], target: CpuTarget, memories: Memories, task: PrimExpr) -> None:
    """The nest that a task belongs to."""
    if not nests:
        return
    first, *others = nests
    if not others:
        _steps(first.body, target, memories, Indices(_task_variables(first, task)))
        return
    count = int64(first.tasks)
    with I.If(tirx.LT(task, count)):
        with I.Then():
            _nests([first], target, memories, task)
        with I.Else():
            _nests(others, target, memories, bind(tirx.Sub(task, count)))


def _task_variables(nest: Nest, task: PrimExpr) -> dict[str, PrimExpr]:
    """The variables of a nest's loops, under their names, from the number of the task."""
    values: dict[str, PrimExpr] = {}
    rest = task
    for name, extent in reversed(nest.spread[1:]):
        rest, values[name] = floor_parts(rest, extent)
    if nest.spread:
        values[nest.spread[0][0]] = rest
    return {name: IRBuilder.name(name, I.Bind(values[name])) for name, _ in nest.spread}


def _steps(steps: Sequence[Step], target: CpuTarget, memories: Memories, indices: Indices) -> None:
    for step in steps:
        match step:
            case Tile():
                emit_tile(step, target, memories, indices)
            case Range(name, lo, hi, body):
                with I.serial(indices.get(lo), indices.get(hi)) as value:
                    IRBuilder.name(name, value)
                    with indices.loop(name, value):
                        _steps(body, target, memories, indices)
            case Choose(condition, yes, no):
                with I.If(indices.get(condition)):
                    with I.Then(), indices.scope():
                        _steps(yes, target, memories, indices)
                    with I.Else(), indices.scope():
                        _steps(no, target, memories, indices)
