"""What a program takes of its levels, in pieces that may be contiguous: transfers, and reads of tiles in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilec.ir.algebra import KnownRanges, simplify
from tilec.ir.expr import Access, Binary, Const, Expr, accesses, variables
from tilec.ir.intervals import Symbolic
from tilec.ir.program import Buffer, ComputeTile
from tilec.ir.propagate import propagate, read_window
from tilec.ir.reads import is_gathered, reads
from tilec.lower.counts.transfers import Around, Span, Transfers


@dataclass(frozen=True, slots=True)
class ContiguousAccess:
    """What is read of or written to `below`: `inner` are spans of its dimensions, innermost first, that may form a run,
    with the widths that are stored; `outer` spans how often there is one."""

    held: Buffer
    below: Buffer
    inner: tuple[tuple[Span, Expr], ...]
    outer: tuple[Span, ...]
    around: tuple[Around, ...]


def contiguous_accesses(found: Transfers) -> Iterator[ContiguousAccess]:
    """Every load and store, and every read in place of a level below that of the tile.

    A tile reads the hull of its accesses once; through data-dependent indices it reads a run for each tuple of the
    indices that are not part of it.
    """
    for moved in found.moved:
        yield _whole(moved.held, moved.below, moved.spans, moved.around)
    numbers = _numbers(found)
    for tile, around in found.computed:
        held, below = found.buffers[tile.target], _below(found, tile)
        plain = {t: b for t, b in below.items() if not is_gathered(tile.expr, t)}
        if plain:
            box = {i: (lo, hi) for i, lo, hi in tile.box}
            windows = propagate(tile.expr, box, found.extents, numbers, clip=True)
            yield from (_whole(held, plain[tensor], windows[tensor], around) for tensor in plain)
    yield from gathered_accesses(found)


def gathered_accesses(found: Transfers) -> Iterator[ContiguousAccess]:
    """Every data-dependent read in place of a level below that of the tile."""
    numbers = _numbers(found)
    for tile, around in found.computed:
        below = {t: b for t, b in _below(found, tile).items() if is_gathered(tile.expr, t)}
        if not below:
            continue
        held, box = found.buffers[tile.target], {i: (lo, hi) for i, lo, hi in tile.box}
        closed = {i: (lo, simplify(Binary("-", hi, Const(1)))) for i, (lo, hi) in box.items()}
        for access, read in dict.fromkeys(zip(accesses(tile.expr), reads(tile.expr), strict=True)):
            if access.tensor in below:
                window, _ = read_window(read, closed, found.extents[access.tensor], numbers, clip=True)
                spans = [(first, simplify(Binary("+", last, Const(1)))) for first, last in window]
                yield _gathered(held, below[access.tensor], access, spans, box, around)


def _numbers(found: Transfers) -> Symbolic:
    last = {loop: Const(max(0, extent - 1)) for loop, extent in found.positions.extents.items()}
    return Symbolic(KnownRanges({loop: (Const(0), end) for loop, end in last.items()}))


def _below(found: Transfers, tile: ComputeTile) -> dict[str, Buffer]:
    """What a tile reads of lower levels."""
    rank = found.rank[found.buffers[tile.target].level]
    held = {t: found.buffers[name] for t, name in tile.operands}
    return {t: b for t, b in held.items() if found.rank[b.level] < rank}


def _whole(held: Buffer, below: Buffer, spans: Sequence[Span], around: tuple[Around, ...]) -> ContiguousAccess:
    order = _innermost_first(below)
    return ContiguousAccess(held, below, tuple((spans[dim], below.shape[dim]) for dim in order), (), around)


def _innermost_first(below: Buffer) -> tuple[int, ...]:
    return tuple(reversed(below.layout or range(len(below.shape))))


def _gathered(
    held: Buffer,
    below: Buffer,
    access: Access,
    spans: Sequence[Span],
    box: Mapping[str, Span],
    around: tuple[Around, ...],
) -> ContiguousAccess:
    """A data-dependent read: innermost dimensions with iterators of their own, once for each tuple of the others."""
    moving = [variables(index) & box.keys() for index in access.index]
    chosen = [bool(accesses(index)) for index in access.index]
    order = list(_innermost_first(below))
    inner: list[tuple[Span, Expr]] = []
    while order and not chosen[order[0]] and not any(moving[order[0]] & moving[dim] for dim in order[1:]):
        dim = order.pop(0)
        inner.append((spans[dim], below.shape[dim]))
    outer = sorted(set().union(*(moving[dim] for dim in order)))
    return ContiguousAccess(held, below, tuple(inner), tuple(box[i] for i in outer), around)
