"""Loads, stores and fills: copies between memories by all threads of a block, between memory and registers by units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilec.codegen.gpu.axes import Axis, axis, axis_ranges, loops
from tilec.codegen.gpu.c_text import literal, storage_type, value_type
from tilec.codegen.gpu.index_text import at_least, is_multiple, width
from tilec.codegen.gpu.kernel_state import THREAD, KernelState, with_ranges
from tilec.codegen.gpu.scalar_text import loaded, stored
from tilec.codegen.gpu.slots import element
from tilec.errors import UnsupportedError
from tilec.ir.algebra import KnownRanges, simplify
from tilec.ir.expr import Binary, Const, Expr, Scalar, Var, constant_value, substitute
from tilec.ir.program import Buffer, Combine
from tilec.ir.types import TTYPES

WIDEST = 16
"""Bytes that a thread loads or stores at most at once."""


@dataclass(frozen=True)
class Copy:
    """Copy the window `[lo, hi)` of the tensor between `upper`, which holds it, and `lower`."""

    upper: Buffer
    lower: Buffer
    lo: tuple[Expr, ...]
    hi: tuple[Expr, ...]
    up: bool
    fill: Scalar | None = None
    combine: Combine = "none"


def move(state: KernelState, copy: Copy, ranges: KnownRanges) -> None:
    """A copy: of registers by each unit, of shared memory by all threads."""
    if state.in_registers(copy.lower):
        raise UnsupportedError("copies between registers have no GPU code", hint="Load from memory instead.")
    if state.in_registers(copy.upper):
        _of_registers(state, copy, ranges)
    else:
        _together(state, copy, ranges)


def fill(state: KernelState, buffer: Buffer, value: Scalar, ranges: KnownRanges) -> None:
    """Set all elements of a buffer."""
    text = stored(literal(value, "f32" if buffer.ttype in ("f16", "bf16") else buffer.ttype), buffer.ttype)
    if state.in_registers(buffer):
        total = 1
        for extent in state.array_shape(buffer):
            total *= extent
        name = state.names.fresh("e")
        head = f"for (int {name} = 0; {name} < {total}; ++{name})"
        with state.nested([f"#pragma unroll\n{head}"]):
            state.lines.add(f"{state.names[buffer.name]}[{name}] = {text};")
        return
    index, inner, head = _linear(state, buffer, buffer, 1, ranges)
    with state.nested([head]):
        at = state.address(buffer, [Binary("+", a, b) for a, b in zip(buffer.lo, index, strict=True)], inner)
        state.lines.add(f"{state.memory('ST', buffer)}({at}, {text});")


def _of_registers(state: KernelState, copy: Copy, ranges: KnownRanges) -> None:
    """Each lane moves what it holds, neighbours together; of what all lanes hold the first stores."""
    buffer, held = copy.upper, state.maps.buffers[copy.upper.name]
    vector = 4
    axes = tuple(
        axis(state, f"{buffer.name}_{d}", lo, hi, ranges, held if held and held.along == d else None, fixed=True,
             vector=vector if d == len(buffer.lo) - 1 and held is None else 1)
        for d, (lo, hi) in enumerate(zip(buffer.lo, buffer.hi, strict=True))
    )  # fmt: skip
    inner = axis_ranges(axes, ranges)
    index = [each.position for each in axes]
    conditions, missing = _inside(state, copy, index, inner)
    own = [each.inside for each in axes if each.inside is not None] + conditions
    only = "lane == 0" if not copy.up and held is None and state.lanes > 1 else ""
    heads = [f"if ({text})" for text in (state.active, only) if text]
    last = next((each for each in reversed(axes) if each.inner[1] > 1), None)
    vectors = (
        last is not None
        and not own
        and not missing
        and copy.combine == "none"
        and _neighbours(state, copy, last, index, inner)
    )
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
            _store(state, copy, address, register)
            return
        text = f"{state.memory('LD', copy.lower)}({address})"
        if present:
            text = f"{present} ? {text} : {_constant(copy.fill or 0, copy.lower.ttype)}"
        state.lines.add(f"{register} = {text};")


def _constant(value: Scalar, ttype: str) -> str:
    computed = "f32" if ttype in ("f16", "bf16") else ttype
    return stored(literal(value, computed), ttype)


def _store(state: KernelState, copy: Copy, address: str, text: str) -> None:
    lower, upper = copy.lower, copy.upper
    if lower.ttype != upper.ttype:
        text = stored(loaded(text, upper.ttype), lower.ttype)
    if copy.combine == "none":
        state.lines.add(f"{state.memory('ST', lower)}({address}, {text});")
        return
    if value_type(lower.ttype) not in ("float", "int"):
        raise UnsupportedError(f"units cannot combine {lower.ttype} in memory", hint="Let one unit reduce.")
    state.lines.add(f"t_atomic_{copy.combine}({address}, {text});")


def _neighbours(state: KernelState, copy: Copy, last: Axis, index: Sequence[Expr], ranges: KnownRanges) -> bool:
    """Whether the neighbours along an axis lie side by side in the lower buffer, at a multiple of their size."""
    size, count = TTYPES[copy.lower.ttype].bits // 8, last.inner[1]
    if size * count > WIDEST or copy.lower.ttype == "bool" or copy.lower.ttype != copy.upper.ttype:
        return False
    return contiguous(state, copy.lower, index, last.inner[0], count, ranges)


def contiguous(
    state: KernelState, buffer: Buffer, index: Sequence[Expr], variable: str, count: int, ranges: KnownRanges
) -> bool:
    """Whether elements follow one another as a variable counts up, the first at a multiple of `count`."""
    flat = state.flat(buffer, index, ranges)
    first = _at(flat, variable, 0, ranges)
    if simplify(Binary("-", Binary("-", flat, first), Var(variable)), ranges) != Const(0):
        return False
    return is_multiple(first, count, ranges)


def _at(expr: Expr, variable: str, value: int, ranges: KnownRanges) -> Expr:
    return simplify(substitute(expr, {variable: Const(value)}), ranges)


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
    first = state.address(copy.lower, [_at(each, last.inner[0], 0, ranges) for each in index], ranges)
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


def _inside(
    state: KernelState, copy: Copy, index: Sequence[Expr], ranges: KnownRanges
) -> tuple[list[Expr], list[Expr]]:
    """(conditions for an element to be copied, conditions for it to exist below), without those that always hold."""
    own: list[Expr] = []
    exists: list[Expr] = []
    for at, lo, hi in zip(index, copy.lo, copy.hi, strict=True):
        own += _between(at, lo, hi, ranges)
    for d, at in enumerate(index):
        lower = copy.lower
        exists += _between(at, lower.lo[d], lower.hi[d], ranges)
        exists += _between(at, Const(0), state.shapes[copy.upper.tensor][d], ranges)
    exists = list(dict.fromkeys(exists))
    if copy.up and copy.fill is not None:
        return own, exists
    return list(dict.fromkeys((*own, *exists))), []


def _between(at: Expr, lo: Expr, hi: Expr, ranges: KnownRanges) -> list[Expr]:
    parts: list[Expr] = []
    below, above = width(lo, at, ranges), width(at, hi, ranges)
    if not at_least(below, 0, ranges):
        parts.append(Binary(">=", below, Const(0)))
    if not at_least(above, 1, ranges):
        parts.append(Binary(">", above, Const(0)))
    return parts


def _together(state: KernelState, copy: Copy, ranges: KnownRanges) -> None:
    """All threads copy elements in the order in which they lie in the lower buffer, neighbours together."""
    upper, lower = copy.upper, copy.lower
    size = TTYPES[lower.ttype].bits // 8
    for vector in (8, 4, 2, 1):
        if size * vector > WIDEST or (vector > 1 and not _divides(copy, vector)):
            continue
        offsets, inner, head = _linear(state, upper, lower, vector, ranges)
        index = [simplify(Binary("+", a, b), inner) for a, b in zip(upper.lo, offsets, strict=True)]
        own, missing = _inside(state, copy, index, inner)
        if vector > 1 and (own or missing or not _pairs(state, copy, index, vector, inner)):
            continue
        with state.nested([head]):
            here, there = state.address(upper, index, inner), state.address(lower, index, inner)
            if vector > 1:
                source, target = (there, here) if copy.up else (here, there)
                load = state.memory("LD", lower if copy.up else upper, vector)
                store = state.memory("ST", upper if copy.up else lower, vector)
                state.lines.add(f"{store}({target}, {load}({source}));")
                return
            _element_move(state, copy, here, there, state.condition(own, inner), state.condition(missing, inner))
            return


def _divides(copy: Copy, vector: int) -> bool:
    """Whether whole vectors fill the rows of a copy between buffers of one type."""
    upper, lower = copy.upper, copy.lower
    order = lower.layout or tuple(range(len(lower.shape)))
    last = constant_value(upper.shape[order[-1]]) if order else None
    return copy.combine == "none" and upper.ttype == lower.ttype and last is not None and last % vector == 0


def _pairs(state: KernelState, copy: Copy, index: Sequence[Expr], vector: int, ranges: KnownRanges) -> bool:
    """Whether vectors are aligned in both buffers, in which the last dimension of storage is the same."""
    orders = {(b.layout or tuple(range(len(b.shape))))[-1:] for b in (copy.upper, copy.lower)}
    flats = [state.flat(b, index, ranges) for b in (copy.upper, copy.lower)]
    return len(orders) == 1 and all(is_multiple(flat, vector, ranges) for flat in flats)


def _element_move(state: KernelState, copy: Copy, here: str, there: str, own: str, present: str) -> None:
    with state.nested([f"if ({own})"] if own else []):
        if not copy.up:
            _store(state, copy, there, f"{state.memory('LD', copy.upper)}({here})")
            return
        text = f"{state.memory('LD', copy.lower)}({there})"
        if copy.upper.ttype != copy.lower.ttype:
            text = stored(loaded(text, copy.lower.ttype), copy.upper.ttype)
        if present:
            text = f"{present} ? {text} : {_constant(copy.fill or 0, copy.upper.ttype)}"
        state.lines.add(f"{state.memory('ST', copy.upper)}({here}, {text});")


def _linear(
    state: KernelState, upper: Buffer, lower: Buffer, vector: int, ranges: KnownRanges
) -> tuple[list[Expr], KnownRanges, str]:
    """Offsets of an element in the window of `upper` from its number, in the order of `lower`; the ranges with that
    number, and the head of the loop over all of them by the threads of the block."""
    order = lower.layout or tuple(range(len(lower.shape)))
    extents = {d: upper.shape[d] for d in order}
    if vector > 1:
        extents[order[-1]] = simplify(Binary("//", extents[order[-1]], Const(vector)))
    total: Expr = Const(1)
    for d in order:
        total = simplify(Binary("*", total, extents[d]))
    name = state.names.fresh("e")
    state.names.assign({f"#{name}": name})
    variable: Expr = Var(f"#{name}")
    inner = with_ranges(ranges, {f"#{name}": total, THREAD.name: state.threads})
    offsets: list[Expr] = [Const(0)] * len(order)
    step: Expr = Const(1)
    for place, d in enumerate(reversed(order)):
        at = simplify(Binary("//", variable, step), inner)
        outermost = place == len(order) - 1
        offsets[d] = at if outermost else simplify(Binary("%", at, extents[d]), inner)
        step = simplify(Binary("*", step, extents[d]))
    if vector > 1:
        offsets[order[-1]] = simplify(Binary("*", offsets[order[-1]], Const(vector)), inner)
    head = f"for (int {name} = tid; {name} < {state.text(total, ranges)}; {name} += {state.threads})"
    return offsets, inner, head
