"""Rows in a core's level as their banks serve them: padded or swizzled where that takes fewer wavefronts (W37).

A row is written piece by piece, and eight rows are read at the same piece, as units of matrices load them and lanes
store their results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilec.ir.storage import LINE, PIECE, SWIZZLES
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
    """Rows that are read in pieces of `access` bytes, one below the other; `banks` bytes are served at once."""

    access: int
    banks: int

    def layout(self, row: int) -> RowLayout:
        """The layout of rows of some bytes: the fewest wavefronts that read, which several units do, then that write,
        then the fewest bytes."""
        if row <= self.access:
            return RowLayout()
        return min(_layouts(row, self.access, self.banks), key=lambda of: (of.read, of.written, of.pad))


@lru_cache(maxsize=4096)
def _layouts(row: int, access: int, banks: int) -> tuple[RowLayout, ...]:
    return (*_padded(row, access, banks), *(_swizzled(row) if (access, banks) == (PIECE, LINE) else ()))


def _padded(row: int, access: int, banks: int) -> Iterator[RowLayout]:
    """Rows as they are where they begin with pieces, and rows of an odd number of pieces, of which equal ones lie in
    all banks."""
    pieces, together = -(-row // access), max(1, banks // access)
    for stride in (pieces, pieces + 1 - pieces % 2):
        places = np.arange(together)[:, None] * stride + np.arange(pieces)
        yield RowLayout(stride * access - row, 0, *_wavefronts(places, together))


def _swizzled(row: int) -> Iterator[RowLayout]:
    for swizzle in SWIZZLES:
        if row % swizzle == 0:
            each, together = swizzle // PIECE, LINE // PIECE
            at, rows = np.arange(row // PIECE), np.arange(together)[:, None]
            places = at // each * together * each + rows * each + at % each
            yield RowLayout(0, swizzle, *_wavefronts(places ^ places // together % each, together))


def _wavefronts(places: Ints, together: int) -> tuple[float, float]:
    """Over the fewest: those that write the pieces of rows at some places one after another, and those that read the
    pieces below one another."""
    written, read = (
        float(np.mean([np.bincount(some).max() for some in by.reshape(-1, together) % together]))
        for by in (places, places.T)
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
    for tensor, dim in problem.banked.items():
        size = problem.held_bytes(tensor)
        rows = row_of(problem, seen, tensor, dim) * size
        different, which = np.unique(rows, return_inverse=True)
        which = which.reshape(rows.shape)
        best = [pieces.layout(int(row)) for row in different]
        pads, swizzles = (np.asarray(of, np.int64) for of in ([b.pad // size for b in best], [b.swizzle for b in best]))
        written = np.asarray([of.written for of in best])
        found[tensor] = RowLayouts(pads[which], swizzles[which], written[which])
    return found


def row_of(problem: TilingProblem, seen: TileFootprints, tensor: str, dim: int) -> Ints:
    """Elements of a row of a tensor along a dimension in tiles."""
    if tensor in seen.windows:
        return np.asarray(width(*seen.windows[tensor][dim]))
    (expr,) = (node.expr for node in problem.nodes if node.name == tensor)
    return np.asarray(width(*seen.boxes[tensor][expr.spatial[dim]]))


def conflicting_bytes(problem: TilingProblem, seen: TileFootprints, loaded: Mapping[str, Floats]) -> Floats:
    """Bytes that banks could serve while they serve the conflicting writes of what tasks have `loaded`."""
    more: Floats = np.zeros(1)
    for tensor, of in row_layouts(problem, seen).items() if problem.banked else ():
        if tensor in loaded:
            more = more + loaded[tensor] * (of.written - 1)
    return more
