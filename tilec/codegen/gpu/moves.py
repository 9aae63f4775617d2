"""Loads, stores and fills: copies between memories by all threads of a block, between memory and registers by units."""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign, prod

from tilec.codegen.gpu.copies import WIDEST, Copy, conditions, constant_element, store_element
from tilec.codegen.gpu.guards import depend
from tilec.codegen.gpu.index_text import is_multiple
from tilec.codegen.gpu.kernel_state import THREAD, KernelState, with_ranges
from tilec.codegen.gpu.register_moves import move_registers
from tilec.codegen.gpu.scalar_text import loaded, stored
from tilec.errors import UnsupportedError
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, Scalar, Var, constant_value
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer
from tilec.ir.types import TTYPES

UNROLLED = 16
"""Turns of a loop of copies that are all unrolled at most."""

TOGETHER = 8
"""Turns of a longer one that are unrolled (two of 66 and 131 turns on an H100 took 35 and 17 us one by one)."""

NUMBER = Var("#e")
"""The number of an element, or of a vector, among those that the threads of a block copy."""

NEIGHBOUR = "#neighbour"
"""The variable that counts the elements of a vector in a row."""

ASYNCHRONOUS = (4, 8, 16)
"""Bytes that an asynchronous copy of a thread may have."""


def move(state: KernelState, copy: Copy, ranges: KnownRanges) -> None:
    """A copy: of registers by each unit, of shared memory by all threads."""
    if state.in_registers(copy.lower):
        raise UnsupportedError("copies between registers have no GPU code", hint="Load from memory instead.")
    if state.in_registers(copy.upper):
        move_registers(state, copy, ranges)
    else:
        _together(state, copy, ranges)


def fill(state: KernelState, buffer: Buffer, value: Scalar, ranges: KnownRanges) -> None:
    """Set all elements of a buffer."""
    text = constant_element(value, buffer.ttype)
    if state.in_registers(buffer):
        total = 1
        for extent in state.array_shape(buffer):
            total *= extent
        name = state.names.fresh("e")
        head = f"for (int {name} = 0; {name} < {total}; ++{name})"
        with state.nested([f"#pragma unroll\n{head}"]):
            state.lines.add(f"{state.names[buffer.name]}[{name}] = {text};")
        return
    vector = next(n for n in (8, 4, 2, 1) if _fills_vectors(state, buffer, n, ranges))
    index, inner, total = _linear(state, buffer, buffer, vector, ranges)
    with state.nested(_turns(state, total, ranges)):
        at = state.address(buffer, [Binary("+", a, b) for a, b in zip(buffer.lo, index, strict=True)], inner)
        value_text = text if vector == 1 else f"t_vector<{vector}>({text})"
        state.lines.add(f"{state.memory('ST', buffer, vector)}({at}, {value_text});")


def _fills_vectors(state: KernelState, buffer: Buffer, vector: int, ranges: KnownRanges) -> bool:
    """Whether whole aligned vectors fill a buffer."""
    if vector == 1:
        return True
    if TTYPES[buffer.ttype].bits // 8 * vector > WIDEST or not _rows_divide(buffer, buffer, vector):
        return False
    offsets, inner, _ = _linear(state, buffer, buffer, vector, ranges)
    index = [simplify(Binary("+", a, b), inner) for a, b in zip(buffer.lo, offsets, strict=True)]
    return is_multiple(state.flat(buffer, index, inner), vector, inner)


def _together(state: KernelState, copy: Copy, ranges: KnownRanges) -> None:
    """All threads copy elements in the order in which they lie in the lower buffer, neighbours together."""
    upper, lower = copy.upper, copy.lower
    size = TTYPES[lower.ttype].bits // 8
    for vector in (8, 4, 2, 1):
        if size * vector > WIDEST or (vector > 1 and not _divides(copy, vector)):
            continue
        offsets, inner, total = _linear(state, upper, lower, vector, ranges)
        index = [simplify(Binary("+", a, b), inner) for a, b in zip(upper.lo, offsets, strict=True)]
        own, missing = _of_neighbours(state, copy, index, vector, inner)
        asynchronous = size * vector in ASYNCHRONOUS and _zero(copy, missing)
        asynchronous = asynchronous and (copy.asynchronous or _waits_long(state, copy, [*own, *missing], vector))
        if not _pairs(state, copy, index, vector, inner) or depend([*own, *missing], NEIGHBOUR):
            continue
        with state.nested(_turns(state, total, ranges)):
            here, there = state.address(upper, index, inner), state.address(lower, index, inner)
            guard = [f"if ({state.condition(own, inner)})"] if own else []
            if asynchronous and upper.ttype == lower.ttype:
                present = state.condition(missing, inner) or "true"
                with state.nested(guard):
                    state.lines.add(f"t_copy({size * vector}, {here}, {there}, {present});")
                state.arriving = state.arriving or not copy.asynchronous
                return
            if vector > 1:
                source, target = (there, here) if copy.up else (here, there)
                load = state.memory("LD", lower if copy.up else upper, vector)
                store = state.memory("ST", upper if copy.up else lower, vector)
                value = f"{load}({source})"
                if missing:
                    filled = constant_element(copy.fill or 0, upper.ttype)
                    value = f"{state.condition(missing, inner)} ? {value} : t_vector<{vector}>({filled})"
                with state.nested(guard):
                    state.lines.add(f"{store}({target}, {value});")
                return
            _element_move(state, copy, here, there, state.condition(own, inner), state.condition(missing, inner))
            return


def _waits_long(state: KernelState, copy: Copy, guards: Sequence[Expr], vector: int) -> bool:
    """Whether threads had better not wait for what they load: guards keep the loads of several turns from being on the
    way together, and so do loops of many turns, or of a number that is not known."""
    sizes = [constant_value(extent) for extent in copy.upper.shape]
    short = all(sizes) and prod(size or 0 for size in sizes) <= UNROLLED * state.threads * vector
    loads = copy.up and copy.lower.level == state.lowest and not state.pipelined
    return loads and (bool(guards) or not short)


def _zero(copy: Copy, missing: Sequence[Expr]) -> bool:
    """Whether elements that do not exist below, if there may be any, have no bit set."""
    return not missing or copy.fill is None or (copy.fill == 0 and copysign(1.0, copy.fill) > 0)


def _order(buffer: Buffer) -> tuple[int, ...]:
    """The dimensions of a buffer in the order of storage, outermost first."""
    return buffer.layout or tuple(range(len(buffer.shape)))


def _row(upper: Buffer, lower: Buffer) -> int | None:
    """The dimension of rows: the last one in storage but for those of extent 1; None where there is none, or where it
    is another one in either buffer."""
    shapes = list(zip(upper.shape, lower.shape, strict=True))
    rows = {next((d for d in reversed(_order(b)) if shapes[d] != (Const(1), Const(1))), None) for b in (upper, lower)}
    return rows.pop() if len(rows) == 1 else None


def _divides(copy: Copy, vector: int) -> bool:
    """Whether whole vectors fill the rows of a copy between buffers of one type."""
    return copy.upper.ttype == copy.lower.ttype and _rows_divide(copy.upper, copy.lower, vector)


def _rows_divide(upper: Buffer, lower: Buffer, vector: int) -> bool:
    """Whether whole vectors fill the rows of the upper of two buffers."""
    row = _row(upper, lower)
    extent = constant_value(upper.shape[row]) if row is not None else None
    return extent is not None and extent % vector == 0


def _of_neighbours(
    state: KernelState, copy: Copy, index: Sequence[Expr], vector: int, ranges: KnownRanges
) -> tuple[list[Expr], list[Expr]]:
    """Conditions for an element of a vector that begins at an index to be copied, and for it to exist; they name
    NEIGHBOUR where elements of a vector differ."""
    row = _row(copy.upper, copy.lower)
    if vector == 1 or row is None:
        return conditions(state, copy, index, ranges)
    each = [Binary("+", at, Var(NEIGHBOUR)) if d == row else at for d, at in enumerate(index)]
    return conditions(state, copy, each, with_ranges(ranges, {NEIGHBOUR: vector}))


def _pairs(state: KernelState, copy: Copy, index: Sequence[Expr], vector: int, ranges: KnownRanges) -> bool:
    """Whether vectors are aligned in both buffers."""
    flats = [state.flat(b, index, ranges) for b in (copy.upper, copy.lower)]
    return all(is_multiple(flat, vector, ranges) for flat in flats)


def _element_move(state: KernelState, copy: Copy, here: str, there: str, own: str, present: str) -> None:
    with state.nested([f"if ({own})"] if own else []):
        if not copy.up:
            store_element(state, copy, there, f"{state.memory('LD', copy.upper)}({here})")
            return
        text = f"{state.memory('LD', copy.lower)}({there})"
        if copy.upper.ttype != copy.lower.ttype:
            text = stored(loaded(text, copy.lower.ttype), copy.upper.ttype)
        if present:
            text = f"{present} ? {text} : {constant_element(copy.fill or 0, copy.upper.ttype)}"
        state.lines.add(f"{state.memory('ST', copy.upper)}({here}, {text});")


def _linear(
    state: KernelState, upper: Buffer, lower: Buffer, vector: int, ranges: KnownRanges
) -> tuple[list[Expr], KnownRanges, Expr]:
    """Offsets of an element in the window of `upper` from its NUMBER, in the order of `lower`; the ranges with that
    number, and how many there are."""
    order, row = _order(lower), _row(upper, lower) if vector > 1 else None
    extents = {d: upper.shape[d] for d in order}
    if row is not None:
        extents[row] = simplify(Binary("//", extents[row], Const(vector)))
    total: Expr = Const(1)
    for d in order:
        total = simplify(Binary("*", total, extents[d]))
    inner = with_ranges(ranges, {NUMBER.name: total, THREAD.name: state.threads})
    offsets: list[Expr] = [Const(0)] * len(order)
    step: Expr = Const(1)
    for place, d in enumerate(reversed(order)):
        at = simplify(Binary("//", NUMBER, step), inner)
        outermost = place == len(order) - 1
        offsets[d] = at if outermost else simplify(Binary("%", at, extents[d]), inner)
        step = simplify(Binary("*", step, extents[d]))
    if row is not None:
        offsets[row] = simplify(Binary("*", offsets[row], Const(vector)), inner)
    return offsets, inner, total


def _turns(state: KernelState, total: Expr, ranges: KnownRanges) -> list[str]:
    """The heads of a loop in which the threads of a block take a NUMBER below `total` in turns; where there are a known
    number of turns it is unrolled, so that loads of several turns are on the way together."""
    name = state.names.fresh("e")
    state.names.assign({NUMBER.name: name})
    count = constant_value(total)
    if count is None:
        return [f"for (int {name} = tid; {name} < {state.text(total, ranges)}; {name} += {state.threads})"]
    turns, turn = -(-count // state.threads), state.names.fresh("n")
    guard = [f"if ({name} < {count})"] if count % state.threads else []
    head = f"for (int {name} = tid, {turn} = 0; {turn} < {turns}; {name} += {state.threads}, ++{turn})"
    pragma = f"#pragma unroll{'' if turns <= UNROLLED else f' {TOGETHER}'}\n" if turns > 1 else ""
    return [f"{pragma}{head}", *guard]
