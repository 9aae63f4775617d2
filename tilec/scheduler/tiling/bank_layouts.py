"""Rows in a core's level as their banks serve them: padded or swizzled where that takes fewer wavefronts (W37).

A row is written piece by piece; rows are read at equal pieces, as units of matrices load them, or at as many pieces
beside one another as lanes store of a row of results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilec.ir.storage import LINE, PIECE, SWIZZLES
from tilec.scheduler.analysis.banked_rows import BankedRow
from tilec.scheduler.analysis.window_propagation import Floats, Ints, width
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.tile_footprints import TileFootprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Bytes behind every row, or those of the panels of swizzled rows; wavefronts that write rows, and that read them,
    over the fewest that could."""

    pad: int = 0
    swizzle: int = 0
    written: float = 1.0
    read: float = 1.0


@dataclass(frozen=True, slots=True)
class Pieces:
    """Rows that are accessed in pieces of `access` bytes; `banks` bytes are served at once."""

    access: int
    banks: int

    def layout(self, row: int, beside: int = 1) -> RowLayout:
        """The layout of rows of some bytes, of which so many pieces are accessed at once: the fewest wavefronts that
        read, which several units do, then that write, then the fewest bytes."""
        if row <= self.access:
            return RowLayout()
        found = _layouts(row, self.access, self.banks, min(beside, max(1, self.banks // self.access)))
        return min(found, key=lambda of: (of.read, of.written, of.pad))


@lru_cache(maxsize=4096)
def _layouts(row: int, access: int, banks: int, beside: int) -> tuple[RowLayout, ...]:
    swizzled = _swizzled(row, beside) if (access, banks) == (PIECE, LINE) else ()
    return (*_padded(row, access, banks, beside), *swizzled)


def _padded(row: int, access: int, banks: int, beside: int) -> Iterator[RowLayout]:
    """Rows as they are where they begin with pieces, and rows of a few pieces more."""
    pieces, together = -(-row // access), max(1, banks // access)
    for stride in range(pieces, pieces + 2 * beside):
        places = np.arange(together)[:, None] * stride + np.arange(pieces)
        yield RowLayout(stride * access - row, 0, *_wavefronts(places, together, beside))


def _swizzled(row: int, beside: int) -> Iterator[RowLayout]:
    for swizzle in SWIZZLES:
        if row % swizzle == 0:
            each, together = swizzle // PIECE, LINE // PIECE
            at, rows = np.arange(row // PIECE), np.arange(together)[:, None]
            places = at // each * together * each + rows * each + at % each
            yield RowLayout(0, swizzle, *_wavefronts(places ^ places // together % each, together, beside))


def _wavefronts(places: Ints, together: int, beside: int) -> tuple[float, float]:
    """Over the fewest: those that write the pieces of rows at some places one after another, and those that read some
    beside one another, and below."""
    whole = places.shape[1] // beside * beside or places.shape[1]
    below = places[:, :whole].reshape(together, -1, min(beside, whole)).transpose(1, 0, 2)
    written, read = (
        float(np.mean([np.bincount(some).max() for some in by.reshape(-1, together) % together]))
        for by in (places, below)
    )
    return written, read


def pieces_of(target: TargetModel) -> Pieces:
    """The pieces of a core's level."""
    level = target.levels[target.core]
    return Pieces(level.alignment or 1, level.transaction)


@dataclass(frozen=True, slots=True)
class RowLayouts:
    """Layouts of the rows of a tensor for all candidates: elements behind a row, `RowLayout.swizzle` and `written`."""

    pad: Ints
    swizzle: Ints
    written: Floats


def row_layouts(problem: TilingProblem, seen: TileFootprints) -> dict[str, RowLayouts]:
    """Tensor -> how its rows lie in a core's level, where tiles need `seen`."""
    pieces, found = pieces_of(problem.target), dict[str, RowLayouts]()
    for tensor, (row, elements) in problem.storage.banked.items():
        size = problem.storage.held_bytes(tensor)
        rows = row_of(problem, seen, row) * size
        different, which = np.unique(rows, return_inverse=True)
        which = which.reshape(rows.shape)
        best = [pieces.layout(int(of), max(1, elements * size // pieces.access)) for of in different]
        pads, swizzles = (np.asarray(of, np.int64) for of in ([b.pad // size for b in best], [b.swizzle for b in best]))
        written = np.asarray([of.written for of in best])
        found[tensor] = RowLayouts(pads[which], swizzles[which], written[which])
    return found


def row_of(problem: TilingProblem, seen: TileFootprints, row: BankedRow) -> Ints:
    """Elements of a row of a tensor in tiles."""
    if row.along is not None:
        node, iterator = row.along
        return np.asarray(width(*seen.boxes[node][iterator]))
    if row.tensor in seen.windows:
        return np.asarray(width(*seen.windows[row.tensor][row.dim]))
    (expr,) = (node.expr for node in problem.group.nodes if node.name == row.tensor)
    return np.asarray(width(*seen.boxes[row.tensor][expr.spatial[row.dim]]))


def conflicting_bytes(problem: TilingProblem, seen: TileFootprints, loaded: Mapping[str, Floats]) -> Floats:
    """Bytes that banks could serve while they serve the conflicting writes of what tasks have `loaded`."""
    more: Floats = np.zeros(1)
    for tensor, of in row_layouts(problem, seen).items() if problem.storage.banked else ():
        if tensor in loaded:
            more = more + loaded[tensor] * (of.written - 1)
    return more
