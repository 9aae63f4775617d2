"""Copies between memory and registers: each lane moves what it holds, neighbours together."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.codegen.gpu.axes import Axis, axis, axis_ranges, loops
from tilec.codegen.gpu.c_text import storage_type
from tilec.codegen.gpu.copies import WIDEST, Copy, conditions, constant_element, contiguous, first_of, store_element
from tilec.codegen.gpu.kernel_state import KernelState, upper
from tilec.codegen.gpu.lanes import axis_lanes
from tilec.codegen.gpu.slots import element
from tilec.ir.algebra import KnownRanges
from tilec.ir.expr import Expr
from tilec.ir.types import TTYPES


def move_registers(state: KernelState, copy: Copy, ranges: KnownRanges) -> None:
    """Each lane moves what it holds, neighbours together; of what several lanes hold one stores."""
    buffer, held = copy.upper, state.maps.buffers[copy.upper.name]
    vector = 4
    axes = tuple(
        axis(state, f"{buffer.name}_{d}", lo, hi, ranges, axis_lanes(held, d), fixed=True,
             vector=vector if d == len(buffer.lo) - 1 and not held else 1, most=upper(buffer.shape[d], buffer))
        for d, (lo, hi) in enumerate(zip(buffer.lo, buffer.hi, strict=True))
    )  # fmt: skip
    inner = axis_ranges(axes, ranges)
    index = [each.position for each in axes]
    absent, missing = conditions(state, copy, index, inner)
    own = [each.inside for each in axes if each.inside is not None] + absent
    only = "" if copy.up else state.owner(held)
    heads = [f"if ({text})" for text in (state.active, only) if text]
    last = next((each for each in reversed(axes) if each.inner[1] > 1), None)
    vectors = last is not None and not own and not missing and _neighbours(state, copy, last, index, inner)
    order = loops(state, axes, ranges, unroll=True)
    with state.nested(heads):
        if vectors and last is not None:
            with state.nested(order[:-1]):
                _vector_move(state, copy, last, axes, index, order[-1], inner)
        else:
            with state.nested(order):
                register = element(state, buffer, [each.slot for each in axes], inner)
                _scalar_move(
                    state, copy, register, index, state.condition(own, inner), state.condition(missing, inner), inner
                )


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


def _neighbours(state: KernelState, copy: Copy, last: Axis, index: Sequence[Expr], ranges: KnownRanges) -> bool:
    """Whether the neighbours along an axis lie side by side in the lower buffer, at a multiple of their size."""
    size, count = TTYPES[copy.lower.ttype].bits // 8, last.inner[1]
    if size * count > WIDEST or copy.lower.ttype == "bool" or copy.lower.ttype != copy.upper.ttype:
        return False
    return contiguous(state, copy.lower, index, last.inner[0], count, ranges)


def _vector_move(
    state: KernelState,
    copy: Copy,
    last: Axis,
    axes: Sequence[Axis],
    index: Sequence[Expr],
    loop: str,
    ranges: KnownRanges,
) -> None:
    count, kind = last.inner[1], storage_type(copy.lower.ttype)
    first = state.address(copy.lower, [first_of(each, last.inner[0], ranges) for each in index], ranges)
    register = element(state, copy.upper, [each.slot for each in axes], ranges)
    name, at = state.names.fresh("q"), state.names[last.inner[0]]
    if copy.up:
        state.lines.add(f"const vec<{kind}, {count}> {name} = {state.memory('LD', copy.lower, count)}({first});")
        with state.nested([loop]):
            state.lines.add(f"{register} = {name}.v[{at}];")
    else:
        state.lines.add(f"vec<{kind}, {count}> {name};")
        with state.nested([loop]):
            state.lines.add(f"{name}.v[{at}] = {register};")
        state.lines.add(f"{state.memory('ST', copy.lower, count)}({first}, {name});")
