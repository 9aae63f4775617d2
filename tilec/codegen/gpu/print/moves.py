"""Loads, stores and fills: of shared memory by all threads of a block, of registers by each unit."""

from __future__ import annotations

from math import prod

from tilec.codegen.gpu.copy_windows import NUMBER, numbered
from tilec.codegen.gpu.kernel_ir import Copy, Fill, Unroll
from tilec.codegen.gpu.print.copies import constant_element, loaded_element, store_element
from tilec.codegen.gpu.print.kernel_state import KernelState
from tilec.codegen.gpu.print.loop_text import counted, pragma
from tilec.codegen.gpu.print.register_moves import move_registers
from tilec.ir.expr import Expr, constant_value
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.types import TTYPES


def move(state: KernelState, copy: Copy, ranges: KnownRanges) -> None:
    """A copy: of registers by each unit, of shared memory by all threads."""
    if state.in_registers(copy.upper):
        move_registers(state, copy, ranges)
    else:
        _together(state, copy, ranges)


def fill(state: KernelState, step: Fill, ranges: KnownRanges) -> None:
    """Set all elements of a buffer."""
    buffer, text = step.buffer, constant_element(step.value, step.buffer.ttype)
    if state.in_registers(buffer):
        name = state.names.fresh("e")
        active = [f"if ({state.text(step.active, ranges)})"] if step.active is not None else []
        with state.nested([*active, counted(name, prod(state.array_shape(buffer)))]):
            state.lines.add(f"{state.names[buffer.name]}[{name}] = {text};")
        return
    at = numbered(buffer, buffer, step.vector, state.threads, ranges)
    with state.nested(_turns(state, at.total, step.unroll, ranges)):
        value = text if step.vector == 1 else f"t_vector<{step.vector}>({text})"
        address = state.address(buffer, at.index, at.ranges)
        state.lines.add(f"{state.memory('ST', buffer, step.vector)}({address}, {value});")


def _together(state: KernelState, copy: Copy, ranges: KnownRanges) -> None:
    """All threads copy elements in the order in which they lie in the lower buffer, neighbours together."""
    upper, lower, vector = copy.upper, copy.lower, copy.vector
    at = numbered(upper, lower, vector, state.threads, ranges)
    index, inner = at.index, at.ranges
    turns = _turns(state, at.total, copy.unroll, ranges)
    missing = state.condition(copy.present, inner)
    with state.nested([*turns, *state.when(copy.inside, inner)]):
        here, there = state.address(upper, index, inner), state.address(lower, index, inner)
        if copy.arrival == "later":
            size = TTYPES[lower.ttype].bits // 8 * vector
            state.lines.add(f"t_copy({size}, {here}, {there}, {missing or 'true'});")
        elif vector > 1:
            source, target = (there, here) if copy.up else (here, there)
            load = state.memory("LD", lower if copy.up else upper, vector)
            store = state.memory("ST", upper if copy.up else lower, vector)
            value = f"{load}({source})"
            if missing:
                filled = constant_element(copy.fill or 0, upper.ttype)
                value = f"{missing} ? {value} : t_vector<{vector}>({filled})"
            state.lines.add(f"{store}({target}, {value});")
        elif copy.up:
            state.lines.add(f"{state.memory('ST', upper)}({here}, {loaded_element(state, copy, there, missing)});")
        else:
            store_element(state, copy, there, f"{state.memory('LD', upper)}({here})")


def _turns(state: KernelState, total: Expr, unroll: Unroll, ranges: KnownRanges) -> list[str]:
    """The heads of a loop in which the threads of a block take a NUMBER below `total` in turns."""
    name, count, threads = state.names.bind(NUMBER.name), constant_value(total), state.threads
    if count is None:
        return [f"for (int {name} = tid; {name} < {state.text(total, ranges)}; {name} += {threads})"]
    turns, turn = -(-count // threads), state.names.fresh("n")
    guard = [f"if ({name} < {count})"] if count % threads else []
    head = f"for (int {name} = tid, {turn} = 0; {turn} < {turns}; {name} += {threads}, ++{turn})"
    return [f"{pragma(unroll)}{head}", *guard]
