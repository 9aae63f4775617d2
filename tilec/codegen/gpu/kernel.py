"""A tile program as a kernel: the grid of blocks, units within a block, barriers, and buffers at their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tilec.codegen.gpu.block_threads import MOST_THREADS, acts_together, private_buffers, resident_blocks, threads_of
from tilec.codegen.gpu.c_text import storage_type
from tilec.codegen.gpu.compute import compute
from tilec.codegen.gpu.copies import Copy
from tilec.codegen.gpu.kernel_state import LANE, THREAD, UNIT, KernelState, declaration, shared_pointer, with_ranges
from tilec.codegen.gpu.lane_registers import FREE, registers_of, threads_with
from tilec.codegen.gpu.lanes import lane_maps
from tilec.codegen.gpu.moves import fill, move
from tilec.codegen.gpu.pipelined_loops import Pipeline, begin_first, begin_next
from tilec.codegen.gpu.spread_loops import free_variables, iterations, numbered, spread_nest
from tilec.errors import UnsupportedError
from tilec.ir.address_spaces import places
from tilec.ir.algebra import simplify
from tilec.ir.concurrency import iterations_per_unit
from tilec.ir.expr import Const, Expr, Var, constant_value
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.lifetimes import statements
from tilec.ir.matrix_units import MatrixUnit
from tilec.ir.program import (
    Allocate,
    Barrier,
    Buffer,
    ComputeTile,
    Fill,
    LoadTiles,
    Loop,
    Program,
    Statement,
    StoreTiles,
    Wait,
)
from tilec.ir.scopes import scope_of
from tilec.ir.upper_envelope import largest

AHEAD = 2
"""Turns of a loop whose loads into registers are on the way together."""


@dataclass(frozen=True)
class KernelText:
    """The text of a kernel and how it is launched: blocks and bytes of shared memory over the program's symbols, which
    it takes as arguments behind its buffers. `functions` are what it calls beyond tile.h, by name."""

    symbol: str
    text: str
    grid: Expr
    threads: int
    shared_bytes: Expr
    symbols: tuple[str, ...]
    functions: Mapping[str, str] = field(default_factory=dict)


def kernel_of(
    program: Program,
    symbol: str,
    lanes: int,
    ranges: KnownRanges,
    units: Mapping[str, MatrixUnit] | None = None,
    registers: int | None = None,
) -> KernelText:
    """The kernel of a program whose units have so many lanes and share so many bytes of `registers`; `units` of
    matrices by name. Raises UnsupportedError for what has no GPU code."""
    _check_levels(program)
    nest, body = _grid(program)
    shared = _shared_bytes(program)
    maps = lane_maps(program, lanes, units)
    group = max((unit.warps for unit, _ in maps.products.values()), default=1)
    grid, needed = iterations(loop.extent for loop in nest), registers_of(program, maps)
    resident = resident_blocks(program, shared, grid, ranges)
    room = MOST_THREADS if registers is None else threads_with(registers, needed, lanes)
    threads = threads_of(program, body, lanes, ranges, resident, group, room)
    beside = MOST_THREADS if registers is None else threads_with(registers, max(needed, FREE), lanes)
    blocks = max(1, min(resident, beside // threads, program.levels[2].units * lanes // threads))
    state = KernelState(program, maps, lanes, threads)
    for parameter in program.parameters:
        if parameter.place is not None:
            raise UnsupportedError("states that are updated in place have no GPU code", hint="Leave out `state`.")
        state.buffers[parameter.name] = parameter
        state.shapes[parameter.tensor] = parameter.shape
        state.names[parameter.name]
    for each in statements(program.body):
        if isinstance(each, ComputeTile):
            state.shapes.setdefault(each.expr.tensor, each.expr.shape)
    ranges = with_ranges(ranges, {LANE.name: lanes, UNIT.name: max(1, threads // lanes), THREAD.name: threads})
    inner = with_ranges(ranges, {loop.variable: loop.extent for loop in nest})
    _body(state, body, inner)
    head = _head(state, symbol, blocks, nest, grid, ranges)
    text = f"{head}{state.lines.text}}}\n"
    return KernelText(symbol, text, grid, threads, shared, program.symbols, state.functions)


def _check_levels(program: Program) -> None:
    names = [level.name for level in program.levels]
    if len(names) != 3:
        raise UnsupportedError(
            f"GPU code is for memory of the device, of a block and of a unit, not for the levels {', '.join(names)}",
            hint="Leave other levels out of the plan.",
        )


def _grid(program: Program) -> tuple[list[Loop], tuple[Statement, ...]]:
    """The loops over blocks and what a block does."""
    scope = scope_of(program.levels[1])
    nest: list[Loop] = []
    body = program.body
    while len(body) == 1 and isinstance(body[0], Loop) and body[0].kind == "spread" and body[0].scope == scope:
        nest.append(body[0])
        body = body[0].body
    if any(isinstance(each, Loop) and each.kind == "spread" and each.scope == scope for each in statements(body)):
        raise UnsupportedError(f"kernel {program.name} has several grids of blocks", hint="Plan its parts apart.")
    return nest, body


def _shared_bytes(program: Program) -> Expr:
    """Bytes of shared memory of a block: the end of the last place."""
    inside = [s.buffer for s in statements(program.body) if isinstance(s, Allocate)]
    shared = [b for b in inside if b.level == program.levels[1].name]
    found = places(shared, program.levels, iterations_per_unit(program.body, program.levels))
    return largest((Const(0), *(place.end for place in found.values())))


def _head(state: KernelState, symbol: str, blocks: int, nest: Sequence[Loop], grid: Expr, ranges: KnownRanges) -> str:
    """The signature with the threads of a block and the blocks that share a core, and where a thread stands."""
    program, names = state.program, state.names
    constant = {b.name: "" if b.name in program.outputs else "const " for b in program.parameters}
    arguments = [
        f"{constant[b.name]}{storage_type(b.ttype)}* __restrict__ {names[b.name]}" for b in program.parameters
    ] + [f"int {names[each]}" for each in program.symbols]
    lines = [
        f"// {program.name}: {state.threads} threads a block",
        f"T_KERNEL void T_BOUNDS({state.threads}, {blocks}) {symbol}(",
        *(f"    {each}{',' if number < len(arguments) - 1 else ') {'}" for number, each in enumerate(arguments)),
        "  SMEM(smem);",
        "  const int tid = tid_;",
    ]
    if state.lanes > 1:
        lines.append(f"  const int lane = tid % {state.lanes}, unit = tid / {state.lanes};")
    else:
        lines.append("  const int unit = tid;")
    names.assign({"#block": "bid_"})
    lines += [f"  {line}" for line in numbered(state, nest, Var("#block"), grid, ranges)]
    return "\n".join(lines) + "\n"


def _body(state: KernelState, body: Sequence[Statement], ranges: KnownRanges) -> None:
    for statement in body:
        if not isinstance(statement, LoadTiles | Allocate):
            _wait_for_copies(state)
        match statement:
            case Allocate(buffer):
                _allocate(state, buffer, ranges)
            case Barrier():
                if any(unit.reads_memory for unit, _ in state.maps.products.values()):
                    state.lines.add("t_publish();")
                state.lines.add("t_barrier();")
            case Loop(kind="spread"):
                _spread(state, statement, ranges)
            case Loop():
                _serial(state, statement, ranges)
            case Wait(names):
                stages = max(state.buffers[name].copies for name in names)
                state.lines.add(f"t_wait_copies<{stages - 2}>();")
            case Fill(name, value):
                _guarded(state, name, lambda b=state.buffers[name], v=value: fill(state, b, v, ranges))
            case LoadTiles(name, source, value):
                target = state.buffers[name]
                move(state, Copy(target, state.buffers[source], target.lo, target.hi, True, value), ranges)
            case StoreTiles(name, source, lo, hi, "none"):
                held = state.buffers[source]
                move(state, Copy(held, state.buffers[name], lo or held.lo, hi or held.hi, False), ranges)
            case StoreTiles(name):
                raise UnsupportedError(f"units that combine {name} in memory have no GPU code", hint="Let one reduce.")
            case ComputeTile():
                compute(state, statement, state.buffers[statement.target], ranges)
    _wait_for_copies(state)


def _wait_for_copies(state: KernelState) -> None:
    if state.arriving:
        state.lines.add("t_commit_copies();")
        state.lines.add("t_wait_copies<0>();")
        state.arriving = False


def _serial(state: KernelState, loop: Loop, ranges: KnownRanges) -> None:
    """A loop that all threads run together, pipelined where its loads are asynchronous."""
    name, extent = state.names[loop.variable], state.text(loop.extent, ranges)
    inner = with_ranges(ranges, {loop.variable: loop.extent})
    pipeline = Pipeline.of(loop)
    if pipeline is None:
        unroll = f"#pragma unroll {AHEAD}\n" if _streams(state, loop) else ""
        with state.nested([f"{unroll}for (int {name} = 0; {name} < {extent}; ++{name})"]):
            _body(state, loop.body, inner)
        return
    wait = next(number for number, each in enumerate(loop.body) if isinstance(each, Wait)) + 1
    if not isinstance(loop.body[wait], Barrier):
        raise UnsupportedError(
            f"kernel {state.program.name} waits for asynchronous loads without a barrier", hint="Use several warps."
        )
    begin_first(state, pipeline, ranges)
    around, state.pipelined = state.pipelined, True
    with state.nested([f"for (int {name} = 0; {name} < {extent}; ++{name})"]):
        state.copies |= dict.fromkeys(pipeline.targets, pipeline.copy_of(Var(loop.variable)))
        _body(state, [each for each in loop.body[: wait + 1] if each not in pipeline.loads], inner)
        rest = [s for s in loop.body[wait + 1 :] if s not in pipeline.loads and not isinstance(s, Wait)]
        begin = partial(begin_next, state, pipeline, inner)
        if not state.active and any(_is_in_flight(state, each) for each in rest):
            state.meanwhile = begin
        else:
            begin()
        _body(state, rest, inner)
    state.pipelined = around


def _streams(state: KernelState, loop: Loop) -> bool:
    """Whether units load from memory of the device into registers in a loop, each for itself."""
    inside = list(statements(loop.body))
    held = {s.buffer.name for s in inside if isinstance(s, Allocate) and state.in_registers(s.buffer)}
    loads = [s for s in inside if isinstance(s, LoadTiles)]
    apart = not any(isinstance(s, Barrier | Wait) for s in inside)
    lowest = {p.name for p in state.program.parameters}
    return apart and bool(loads) and all(s.target in held and s.source in lowest for s in loads)


def _is_in_flight(state: KernelState, statement: Statement) -> bool:
    """Whether a statement waits for products, so that something can begin meanwhile."""
    product = state.maps.products.get(id(statement))
    return product is not None and product[0].reads_memory


def _guarded(state: KernelState, name: str, print_it: object) -> None:
    private = state.in_registers(state.buffers[name])
    with state.nested([f"if ({state.active})"] if private and state.active else []):
        assert callable(print_it)
        print_it()


def _allocate(state: KernelState, buffer: Buffer, ranges: KnownRanges) -> None:
    state.buffers[buffer.name] = buffer
    state.shapes.setdefault(buffer.tensor, buffer.shape)
    if state.in_registers(buffer):
        state.lines.add(declaration(state, buffer))
    elif buffer.level == state.lowest:
        raise UnsupportedError(
            f"kernel {state.program.name} allocates memory of the device", hint="Plan its parts apart."
        )
    elif buffer.offset is not None:
        state.lines.add(shared_pointer(state, buffer, state.copies.get(buffer.name, Const(0)), ranges))


def _spread(state: KernelState, loop: Loop, ranges: KnownRanges) -> None:
    """A nest of spread loops: each unit takes an iteration; those that have none wait at barriers and help to copy.

    A nest inside another one computes the same for all iterations around it, so that all units share it.
    """
    nest, body = spread_nest(loop)
    around = state.spread
    if around & free_variables((loop,)):
        raise UnsupportedError(
            f"kernel {state.program.name} nests spread loops that depend on one another", hint="Use other tiles."
        )
    total = iterations(each.extent for each in nest)
    units = max(1, state.threads // state.lanes)
    count = constant_value(simplify(total, ranges))
    private = private_buffers(state.program)
    together = any(acts_together(private, each) for each in statements(body))
    inner = with_ranges(ranges, {each.variable: each.extent for each in nest})
    if (count is None or count > units) and together:
        raise UnsupportedError(
            f"kernel {state.program.name} has more iterations that act together than units", hint="Use larger tiles."
        )
    if count is None or count > units:
        number = state.names.fresh("u")
        state.names.assign({f"#{number}": number})
        inner = with_ranges(inner, {f"#{number}": total})
        heads = [f"for (int {number} = unit; {number} < {state.text(total, ranges)}; {number} += {units})"]
        which: Expr = Var(f"#{number}")
    else:
        number, which = "unit", UNIT
        inner = KnownRanges({**inner, UNIT.name: (Const(0), Const(count - 1))})
        heads = [f"if (unit < {count})" if count < units and not together else ""]
    with state.nested(heads):
        for line in numbered(state, nest, which, total, inner):
            state.lines.add(line)
        outside, outer = state.active, state.nest
        state.active = f"unit < {count}" if together and count is not None and count < units else ""
        state.spread, state.nest = around | {each.variable for each in nest}, tuple(nest)
        _body(state, body, inner)
        state.active, state.spread, state.nest = outside, around, outer
