"""Elements of register buffers: the place in a lane's array, and elements that another lane holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.codegen.gpu.kernel_ir import Tile
from tilec.codegen.gpu.lane_reads import iterator_along, own_element
from tilec.codegen.gpu.print.kernel_state import KernelState
from tilec.codegen.gpu.print.scalar_text import loaded
from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Binary, Const, Expr, substitute
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer


def element(state: KernelState, buffer: Buffer, slots: Sequence[Expr], ranges: KnownRanges) -> str:
    """The element of a lane's array with these slots along the dimensions."""
    at: Expr = Const(0)
    for slot, extent in zip(slots, state.array_shape(buffer), strict=True):
        at = Binary("+", Binary("*", at, Const(extent)), slot)
    return f"{state.names[buffer.name]}[{state.text(at, ranges)}]"


def own_place(
    state: KernelState,
    tile: Tile,
    buffer: Buffer,
    access: Access,
    positions: Mapping[str, Expr],
    slots: Mapping[str, Expr],
    ranges: KnownRanges,
) -> str:
    """The element of its own array that a lane reads: slots where lanes lie along an iterator, else positions."""
    offsets = [
        simplify(Binary("-", substitute(index, dict(positions)), lo), ranges)
        for index, lo in zip(access.index, buffer.lo, strict=True)
    ]
    for each in state.held(buffer):
        assert isinstance(each.along, int)
        iterator = iterator_along(tile, buffer, access, each.along)
        assert iterator is not None
        offsets[each.along] = slots[iterator]
    return element(state, buffer, offsets, ranges)


def read_register(
    state: KernelState,
    tile: Tile,
    buffer: Buffer,
    access: Access,
    positions: dict[str, Expr],
    slots: dict[str, Expr],
    ranges: KnownRanges,
) -> str:
    """The value that an access of a tile reads from a register buffer; `positions` and `slots` of the iterators."""
    if own_element(tile, buffer, state.held(buffer), access):
        return loaded(own_place(state, tile, buffer, access, positions, slots, ranges), buffer.ttype)
    index = [substitute(each, positions) for each in access.index]
    offsets = [simplify(Binary("-", at, lo), ranges) for at, lo in zip(index, buffer.lo, strict=True)]
    owner: Expr = Const(0)
    for each in state.held(buffer):
        assert isinstance(each.along, int)
        at, v = offsets[each.along], Const(each.vector)
        rounds = Binary("*", Binary("//", at, Const(each.count * each.vector)), v)
        offsets[each.along] = simplify(Binary("+", rounds, Binary("%", at, v)), ranges)
        which = Binary("%", Binary("//", at, v), Const(each.count))
        owner = Binary("+", owner, Binary("*", which, Const(each.step)))
    text = loaded(element(state, buffer, offsets, ranges), buffer.ttype)
    return f"t_shfl({text}, {state.text(owner, ranges)})"
