"""Copies between memory and registers: each lane moves what it holds, neighbours together."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.codegen.gpu.axes import axis_ranges
from tilec.codegen.gpu.copy_windows import last_neighbours
from tilec.codegen.gpu.kernel_ir import Copy
from tilec.codegen.gpu.print.c_text import storage_type
from tilec.codegen.gpu.print.copies import converted, loaded_element, store_element
from tilec.codegen.gpu.print.kernel_state import KernelState
from tilec.codegen.gpu.print.loop_text import bind, counted, loop, loops
from tilec.codegen.gpu.print.slots import element
from tilec.codegen.gpu.ranges import with_ranges
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, Var, substitute
from tilec.ir.known_ranges import KnownRanges


def move_registers(state: KernelState, copy: Copy, ranges: KnownRanges) -> None:
    """Each lane moves what it holds, neighbours together; of what several lanes hold one stores."""
    bind(state, copy.axes)
    inner = axis_ranges(copy.axes, ranges)
    index = [each.position for each in copy.axes]
    own = state.when(copy.inside, inner)
    only = "" if copy.up else state.owner(state.held(copy.upper))
    active = "" if copy.active is None else state.text(copy.active, ranges)
    order = loops(state, copy.axes, ranges, unroll=True)
    with state.nested([f"if ({text})" for text in (active, only) if text]):
        if copy.vector > 1:
            variable, count = last_neighbours(copy.axes)
            turns = loop(state, variable, Const(count), ranges, unroll=True, step=copy.vector)
            with state.nested([*order[:-1], *([turns] if copy.vector < count else []), *own]):
                _vector_move(state, copy, index, inner)
        else:
            with state.nested(order):
                register = element(state, copy.upper, [each.slot for each in copy.axes], inner)
                address = state.address(copy.lower, index, inner)
                with state.nested(own):
                    if copy.up:
                        present = state.condition(copy.present, inner)
                        state.lines.add(f"{register} = {loaded_element(state, copy, address, present)};")
                    else:
                        store_element(state, copy, address, register)


def _vector_move(state: KernelState, copy: Copy, index: Sequence[Expr], ranges: KnownRanges) -> None:
    """Move so many neighbours at once, from where the loop over them stands if it takes several such moves."""
    kind, count, more = storage_type(copy.lower.ttype), copy.vector, state.names.fresh("e")
    state.names.assign({f"#{more}": more})
    variable, neighbours = last_neighbours(copy.axes)
    whole = count == neighbours
    begin = {variable: Const(0)} if whole else {}
    each: dict[str, Expr] = {variable: Var(f"#{more}") if whole else Binary("+", Var(variable), Var(f"#{more}"))}
    inner = with_ranges(ranges, {f"#{more}": count})
    first = state.address(copy.lower, [simplify(substitute(at, begin), ranges) for at in index], ranges)
    register = element(state, copy.upper, [substitute(axis.slot, each) for axis in copy.axes], inner)
    name, head = state.names.fresh("q"), counted(more, count)
    if copy.up:
        state.lines.add(f"const vec<{kind}, {count}> {name} = {state.memory('LD', copy.lower, count)}({first});")
        with state.nested([head]):
            state.lines.add(f"{register} = {converted(f'{name}.v[{more}]', copy.lower, copy.upper)};")
    else:
        state.lines.add(f"vec<{kind}, {count}> {name};")
        with state.nested([head]):
            state.lines.add(f"{name}.v[{more}] = {converted(register, copy.upper, copy.lower)};")
        state.lines.add(f"{state.memory('ST', copy.lower, count)}({first}, {name});")
