"""Accesses of a program to its levels as contiguous runs: transfers, and reads of tiles in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Binary, Call, Const, Expr, accesses, variables
from tilec.ir.intervals import Symbolic
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.program import Buffer, ComputeTile
from tilec.ir.propagate import propagate, read_window
from tilec.ir.reads import is_gathered, reads
from tilec.lower.counts.loop_positions import Table, joined
from tilec.lower.counts.transfers import Around, Span, Transfers, length


@dataclass(frozen=True, slots=True)
class ContiguousAccess:
    """An access to `below` on behalf of `held`: `inner` are the spans of its dimensions with their stored widths,
    innermost first, that may be contiguous; `outer` spans the repetitions of such a run. `stored` for a store.

    `ranges` are those of a tile's iterators that may be empty where no span is: such a tile computes nothing, and reads
    nothing. Their spans have an element, or none.
    """

    held: Buffer
    below: Buffer
    inner: tuple[tuple[Span, Expr], ...]
    outer: tuple[Span, ...]
    around: tuple[Around, ...]
    stored: bool = False
    ranges: tuple[Span, ...] = ()

    @property
    def spans(self) -> tuple[Span, ...]:
        """All spans, whose lengths have the elements of all repetitions as their product."""
        return *(span for span, _ in self.inner), *self.outer, *self.ranges

    @property
    def gathered(self) -> bool:
        """Whether its indices are data."""
        return len(self.inner) < len(self.below.shape)


def contiguous_accesses(program: Transfers) -> Iterator[ContiguousAccess]:
    """Every load and store, and every read in place from a level below that of the tile.

    A tile reads the hull of its accesses once. With data-dependent indices it reads a run for each tuple of the indices
    outside the run.
    """
    for moved in program.moved:
        yield _whole(moved.held, moved.below, moved.spans, moved.around, moved.stored)
    yield from reads_in_place(program)


def reads_in_place(program: Transfers) -> Iterator[ContiguousAccess]:
    """Every read by a tile from a level below its own."""
    numbers = _numbers(program)
    for tile, around in program.computed:
        target, below = program.buffers[tile.target], _below(program, tile)
        plain = {t: b for t, b in below.items() if not is_gathered(tile.expr, t)}
        if plain:
            box = {i: (lo, hi) for i, lo, hi in tile.box}
            windows = propagate(tile.expr, box, program.extents, numbers, clip=True)
            for tensor, buffer in plain.items():
                run = _whole(target, buffer, windows[tensor], around)
                yield replace(run, ranges=_ranges(program, box, run.spans))
    yield from _gathered_reads(program)


def _gathered_reads(program: Transfers) -> Iterator[ContiguousAccess]:
    """Every data-dependent read in place from a level below that of the tile."""
    numbers = _numbers(program)
    for tile, around in program.computed:
        below = {t: b for t, b in _below(program, tile).items() if is_gathered(tile.expr, t)}
        if not below:
            continue
        target, box = program.buffers[tile.target], {i: (lo, hi) for i, lo, hi in tile.box}
        closed = {i: (lo, simplify(Binary("-", hi, Const(1)))) for i, (lo, hi) in box.items()}
        for access, read in dict.fromkeys(zip(accesses(tile.expr), reads(tile.expr), strict=True)):
            if access.tensor in below:
                window, _ = read_window(read, closed, program.extents[access.tensor], numbers, clip=True)
                spans = [(first, simplify(Binary("+", last, Const(1)))) for first, last in window]
                run = _gathered(target, below[access.tensor], access, spans, box, around)
                yield replace(run, ranges=_ranges(program, box, run.spans))


def _ranges(program: Transfers, box: Mapping[str, Span], spans: Sequence[Span]) -> tuple[Span, ...]:
    """Spans of 1 or 0 elements, 0 where a tile computes nothing, for ranges of its iterators that may be empty where
    no given span is."""
    ranges = {i: program.positions.table(length(span)) for i, span in box.items() if any(map(variables, span))}
    ragged = {i: table for i, table in ranges.items() if not table.values.all()}
    taken = [program.positions.table(length(span)) for span in spans] if ragged else []

    def is_followed(table: Table) -> bool:
        return any(not joined(table, span, lambda of, read: (of == 0) & (read > 0)).values.any() for span in taken)

    return tuple(
        (Const(0), Call("minimum", (Const(1), length(box[i])))) for i, table in ragged.items() if not is_followed(table)
    )


def _numbers(program: Transfers) -> Symbolic:
    last = {loop: Const(max(0, extent - 1)) for loop, extent in program.positions.extents.items()}
    return Symbolic(KnownRanges({loop: (Const(0), end) for loop, end in last.items()}))


def _below(program: Transfers, tile: ComputeTile) -> dict[str, Buffer]:
    """Operands of a tile at lower levels: tensor -> buffer."""
    rank = program.rank[program.buffers[tile.target].level]
    buffers = {t: program.buffers[name] for t, name in tile.operands}
    return {t: b for t, b in buffers.items() if program.rank[b.level] < rank}


def _whole(
    target: Buffer, below: Buffer, spans: Sequence[Span], around: tuple[Around, ...], stored: bool = False
) -> ContiguousAccess:
    order = _innermost_first(below)
    return ContiguousAccess(target, below, tuple((spans[dim], below.shape[dim]) for dim in order), (), around, stored)


def _innermost_first(below: Buffer) -> tuple[int, ...]:
    return tuple(reversed(below.layout or range(len(below.shape))))


def _gathered(
    target: Buffer,
    below: Buffer,
    access: Access,
    spans: Sequence[Span],
    box: Mapping[str, Span],
    around: tuple[Around, ...],
) -> ContiguousAccess:
    """A data-dependent read: the run is made of innermost dimensions with iterators of their own, repeated for each
    tuple of the other iterators."""
    moving = [variables(index) & box.keys() for index in access.index]
    chosen = [bool(accesses(index)) for index in access.index]
    order = list(_innermost_first(below))
    inner: list[tuple[Span, Expr]] = []
    while order and not chosen[order[0]] and not any(moving[order[0]] & moving[dim] for dim in order[1:]):
        dim = order.pop(0)
        inner.append((spans[dim], below.shape[dim]))
    outer = sorted(set().union(*(moving[dim] for dim in order)))
    return ContiguousAccess(target, below, tuple(inner), tuple(box[i] for i in outer), around)
