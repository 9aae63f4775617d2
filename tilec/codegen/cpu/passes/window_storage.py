"""Storage of a buffer's window: in place in the memory below, written through to it, or an array for itself.

On a CPU a load is a view unless it fills, changes the layout or would be overwritten; a buffer that is stored
once is the memory that it is stored to, unless partial results would show there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.codegen.cpu.extents import Extent, product
from tilec.codegen.cpu.kernel_ir import Storage
from tilec.codegen.cpu.passes.buffer_uses import buffer_uses, flat
from tilec.codegen.cpu.simplify_ranges import at_least
from tilec.ir.expr import Const, Expr, Scalar
from tilec.ir.known_ranges import Ranges
from tilec.ir.program import Buffer, LoadTiles, Statement, StoreTiles

Shape = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class BufferWindow:
    """A live buffer: its window in the current ranges, its storage, the buffers whose memory it shares (itself
    included), and what elements outside the tensor hold (None: there are none)."""

    buffer: Buffer
    lo: tuple[Expr, ...]
    hi: tuple[Expr, ...]
    storage: Storage
    shares: frozenset[str]
    outside: Scalar | None = None


@dataclass(frozen=True, slots=True)
class UnplacedBuffer:
    """A buffer before it has storage, and its window `[lo, hi)` in the current ranges."""

    buffer: Buffer
    lo: tuple[Expr, ...]
    hi: tuple[Expr, ...]
    ranges: Ranges


def inside(
    lo: Sequence[Expr], hi: Sequence[Expr], within: tuple[Sequence[Expr], Sequence[Expr]], ranges: Ranges
) -> bool:
    """Whether [lo, hi) certainly lies in another window."""
    return all(
        at_least(a, first, ranges) and at_least(last, b, ranges)
        for a, b, first, last in zip(lo, hi, *within, strict=True)
    )


def in_tensor(plain: UnplacedBuffer, shape: Shape) -> bool:
    """Whether the window certainly lies in its tensor."""
    return inside(plain.lo, plain.hi, ((Const(0),) * len(shape), shape), plain.ranges)


def _same_layout(buffer: Buffer, below: Buffer) -> bool:
    """Whether a buffer can be read in the order in which the memory below has it."""
    plain = tuple(range(len(buffer.lo)))
    return not buffer.layout or buffer.layout == (below.layout or plain)


def viewed(
    plain: UnplacedBuffer, shape: Shape, live: Mapping[str, BufferWindow], after: Sequence[Statement]
) -> BufferWindow | None:
    """The window that a loaded buffer is a view of; `after` are the statements of its scope."""
    buffer = plain.buffer
    uses = buffer_uses(buffer.name, after)
    if uses.writes != 1 or len(uses.loads_into) != 1:
        return None
    load = uses.loads_into[0]
    source = live.get(load.source)
    if source is None or source.buffer.ttype != buffer.ttype or not _same_layout(buffer, source.buffer):
        return None
    if not _filled_alike(load, plain, source, shape) or _overwritten(load, source, live, after):
        return None
    return source


def _filled_alike(load: LoadTiles, plain: UnplacedBuffer, source: BufferWindow, shape: Shape) -> bool:
    if load.fill is None or in_tensor(plain, shape):
        return True
    same = source.outside is not None and repr(source.outside) == repr(load.fill)
    return same and inside(plain.lo, plain.hi, (source.lo, source.hi), plain.ranges)


def _overwritten(
    load: LoadTiles, source: BufferWindow, live: Mapping[str, BufferWindow], after: Sequence[Statement]
) -> bool:
    """Whether the memory that is loaded from changes while the copy is in use."""
    names = source.shares | {w.buffer.name for w in live.values() if w.storage.memory == source.storage.memory}
    started = False
    for statement, _ in flat(after):
        if statement is load:
            started = True
        elif started and not isinstance(statement, LoadTiles):
            written = getattr(statement, "target", None) or getattr(statement, "buffer", None)
            if isinstance(written, str) and written in names:
                return True
    return False


def written_through(
    plain: UnplacedBuffer, shape: Shape, live: Mapping[str, BufferWindow], after: Sequence[Statement], top: bool
) -> BufferWindow | None:
    """The window that a computed buffer is written to directly; `top` says that its level is the highest."""
    buffer = plain.buffer
    uses = buffer_uses(buffer.name, after)
    stores = [s for s in after if isinstance(s, StoreTiles) and s.source == buffer.name]
    if len(stores) != 1 or len(uses.stores_from) != 1 or stores[0].combine != "none":
        return None
    target = live.get(stores[0].target)
    if target is None or target.buffer.ttype != buffer.ttype or not _same_layout(buffer, target.buffer):
        return None
    partial = bool(uses.fills or uses.loads_into or any(c.accumulate for c in uses.computes))
    if partial and (stores[0].lo or (uses.looped and top)):
        return None
    if top and (uses.reads or uses.fills):
        return None
    if any(load.source != target.buffer.name or load.fill is not None for load in uses.loads_into):
        return None
    if any(load.target != buffer.name for load in buffer_uses(target.buffer.name, after).loads_from):
        return None
    fits = inside(plain.lo, plain.hi, (target.lo, target.hi), plain.ranges) and in_tensor(plain, shape)
    return target if fits else None


def strides_of(shape: Sequence[Extent], layout: Sequence[int]) -> tuple[Extent, ...]:
    """Elements between neighbours along every dimension, dimensions stored in the order of `layout`."""
    order = tuple(layout) or tuple(range(len(shape)))
    strides: list[Extent] = [0] * len(shape)
    step: Extent = 1
    for d in reversed(order):
        strides[d] = step
        step = product((step, shape[d]))
    return tuple(strides)
