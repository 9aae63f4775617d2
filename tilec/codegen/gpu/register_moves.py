"""Copies between memory and registers: each lane moves what it holds, neighbours together."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.codegen.gpu.axes import Axis, axis, axis_ranges, loop, loops
from tilec.codegen.gpu.c_text import storage_type
from tilec.codegen.gpu.copies import constant_element, converted, store_element
from tilec.codegen.gpu.copy_windows import WIDEST, conditions, contiguous
from tilec.codegen.gpu.guards import depend
from tilec.codegen.gpu.kernel_ir import Copy
from tilec.codegen.gpu.kernel_state import KernelState
from tilec.codegen.gpu.lanes import axis_lanes, upper
from tilec.codegen.gpu.ranges import with_ranges
from tilec.codegen.gpu.slots import element
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, Var, substitute
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.types import TTYPES


def move_registers(state: KernelState, copy: Copy, ranges: KnownRanges) -> None:
    """Each lane moves what it holds, neighbours together; of what several lanes hold one stores."""
    buffer, held = copy.upper, state.held(copy.upper)
    vector = 4
    axes = tuple(
        axis(state, f"{buffer.name}_{d}", lo, hi, ranges, axis_lanes(held, d), fixed=True,
             vector=vector if d == len(buffer.lo) - 1 and not held else 1, most=upper(buffer.shape[d], buffer))
        for d, (lo, hi) in enumerate(zip(buffer.lo, buffer.hi, strict=True))
    )  # fmt: skip
    inner = axis_ranges(axes, ranges)
    index = [each.position for each in axes]
    own, missing = _conditions(state, copy, axes, inner)
    only = "" if copy.up else state.owner(held)
    active = "" if copy.active is None else state.text(copy.active, ranges)
    heads = [f"if ({text})" for text in (active, only) if text]
    last = next((d for d in reversed(range(len(axes))) if axes[d].inner[1] > 1), None)
    count = _neighbours(copy, axes[last], index, inner) if last is not None and not missing else 1
    vectors = last is not None and count > 1 and not depend(own, axes[last].inner[0])
    order = loops(state, axes, ranges, unroll=True)
    with state.nested(heads):
        if last is not None and vectors:
            guard = [f"if ({state.condition(own, inner)})"] if own else []
            turns = loop(state, axes[last].inner[0], Const(axes[last].inner[1]), ranges, unroll=True, step=count)
            with state.nested([*order[:-1], *([turns] if count < axes[last].inner[1] else []), *guard]):
                _vector_move(state, copy, axes[last], axes, index, count, inner)
        else:
            with state.nested(order):
                register = element(state, buffer, [each.slot for each in axes], inner)
                _scalar_move(
                    state, copy, register, index, state.condition(own, inner), state.condition(missing, inner), inner
                )


def _conditions(
    state: KernelState, copy: Copy, axes: Sequence[Axis], ranges: KnownRanges
) -> tuple[list[Expr], list[Expr]]:
    """Conditions for an element to be moved, and for it to exist below."""
    absent, missing = conditions(state.kernel.shapes, copy, [each.position for each in axes], ranges)
    inside = (each.inside for each in axes)
    return list(dict.fromkeys((*(each for each in inside if each is not None), *absent))), missing


def _scalar_move(
    state: KernelState, copy: Copy, register: str, index: Sequence[Expr], own: str, present: str, ranges: KnownRanges
) -> None:
    address = state.address(copy.lower, index, ranges)
    with state.nested([f"if ({own})"] if own else []):
        if not copy.up:
            store_element(state, copy, address, register)
            return
        text = f"{state.memory('LD', copy.lower)}({address})"
        if present:
            text = f"{present} ? {text} : {constant_element(copy.fill or 0, copy.lower.ttype)}"
        state.lines.add(f"{register} = {text};")


def _neighbours(copy: Copy, last: Axis, index: Sequence[Expr], ranges: KnownRanges) -> int:
    """How many neighbours along an axis lie side by side in the lower buffer, at a multiple of their size, as far as
    they move at once."""
    size, count = TTYPES[copy.lower.ttype].bits // 8, last.inner[1]
    if copy.lower.ttype == "bool":
        return 1
    count = min(count, WIDEST // size)
    whole = last.inner[1] % count == 0 and contiguous(copy.lower, index, last.inner[0], count, ranges)
    return count if whole else 1


def _vector_move(
    state: KernelState,
    copy: Copy,
    last: Axis,
    axes: Sequence[Axis],
    index: Sequence[Expr],
    count: int,
    ranges: KnownRanges,
) -> None:
    """Move so many neighbours at once, from where the loop over them stands if it takes several such moves."""
    kind, variable, more = storage_type(copy.lower.ttype), last.inner[0], state.names.fresh("e")
    state.names.assign({f"#{more}": more})
    whole = count == last.inner[1]
    begin = {variable: Const(0)} if whole else {}
    each: dict[str, Expr] = {variable: Var(f"#{more}") if whole else Binary("+", Var(variable), Var(f"#{more}"))}
    inner = with_ranges(ranges, {f"#{more}": count})
    first = state.address(copy.lower, [simplify(substitute(at, begin), ranges) for at in index], ranges)
    register = element(state, copy.upper, [substitute(axis.slot, each) for axis in axes], inner)
    name, head = state.names.fresh("q"), f"#pragma unroll\nfor (int {more} = 0; {more} < {count}; ++{more})"
    if copy.up:
        state.lines.add(f"const vec<{kind}, {count}> {name} = {state.memory('LD', copy.lower, count)}({first});")
        with state.nested([head]):
            state.lines.add(f"{register} = {converted(f'{name}.v[{more}]', copy.lower, copy.upper)};")
    else:
        state.lines.add(f"vec<{kind}, {count}> {name};")
        with state.nested([head]):
            state.lines.add(f"{name}.v[{more}] = {converted(register, copy.upper, copy.lower)};")
        state.lines.add(f"{state.memory('ST', copy.lower, count)}({first}, {name});")
