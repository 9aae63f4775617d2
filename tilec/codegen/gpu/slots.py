"""Elements of register buffers: the place in a lane's array, and elements that another lane holds."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.codegen.gpu.kernel_state import KernelState
from tilec.codegen.gpu.lanes import own_element
from tilec.codegen.gpu.scalar_text import loaded
from tilec.ir.algebra import KnownRanges, simplify
from tilec.ir.expr import Access, Binary, Const, Expr, substitute
from tilec.ir.program import Buffer, ComputeTile


def element(state: KernelState, buffer: Buffer, slots: Sequence[Expr], ranges: KnownRanges) -> str:
    """The element of a lane's array with these slots along the dimensions."""
    at: Expr = Const(0)
    for slot, extent in zip(slots, state.array_shape(buffer), strict=True):
        at = Binary("+", Binary("*", at, Const(extent)), slot)
    return f"{state.names[buffer.name]}[{state.text(at, ranges)}]"


def read_register(
    state: KernelState,
    tile: ComputeTile,
    buffer: Buffer,
    access: Access,
    positions: dict[str, Expr],
    slots: dict[str, Expr],
    ranges: KnownRanges,
) -> str:
    """The value that an access of a tile reads from a register buffer; `positions` and `slots` of the iterators."""
    held = state.maps.buffers[buffer.name]
    index = [substitute(each, positions) for each in access.index]
    offsets = [simplify(Binary("-", at, lo), ranges) for at, lo in zip(index, buffer.lo, strict=True)]
    if held is None or not isinstance(held.along, int):
        return loaded(element(state, buffer, offsets, ranges), buffer.ttype)
    if own_element(state.maps, tile, buffer, access):
        lanes = state.maps.tiles[id(tile)]
        assert lanes is not None
        offsets[held.along] = slots[str(lanes.along)]
        return loaded(element(state, buffer, offsets, ranges), buffer.ttype)
    at, v = offsets[held.along], held.vector
    whole = Const(state.lanes * v)
    rounds = Binary("*", Binary("//", at, whole), Const(v))
    offsets[held.along] = simplify(Binary("+", rounds, Binary("%", at, Const(v))), ranges)
    owner = simplify(Binary("%", Binary("//", at, Const(v)), Const(state.lanes)), ranges)
    text = loaded(element(state, buffer, offsets, ranges), buffer.ttype)
    return f"t_shfl({text}, {state.text(owner, ranges)})"
