"""Padding of rows in a core's level, so that rows that are read together begin in other banks (W37)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilec.scheduler.analysis.window_propagation import Ints, width
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.tile_footprints import TileFootprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem

FEWEST = 2
"""Pieces of a row that is padded at least: shorter ones would grow by more than half."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Rows that are read in pieces of `access` bytes, one below the other; `banks` bytes are served at once."""

    access: int
    banks: int

    def padding(self, row: Ints | int) -> Ints:
        """Bytes behind a row, so that neighbouring rows begin in other pieces of the banks."""
        pieces = -(-np.asarray(row) // self.access)
        odd = pieces + (pieces % 2 == 0) * (self.banks > self.access)
        return np.where(pieces >= FEWEST, odd * self.access - row, 0)


def pieces_of(target: TargetModel) -> Pieces:
    """The pieces of a core's level."""
    level = target.levels[target.core]
    return Pieces(level.alignment or 1, level.transaction)


def paddings(problem: TilingProblem, seen: TileFootprints) -> dict[str, Ints]:
    """Tensor -> elements behind each of its rows in a core's level, where tiles need `seen`."""
    pieces, found = pieces_of(problem.target), dict[str, Ints]()
    for tensor, dim in problem.padded.items():
        size = problem.held_bytes(tensor)
        found[tensor] = pieces.padding(row_of(problem, seen, tensor, dim) * size) // size
    return found


def row_of(problem: TilingProblem, seen: TileFootprints, tensor: str, dim: int) -> Ints:
    """Elements of a row of a tensor along a dimension in tiles."""
    if tensor in seen.windows:
        return np.asarray(width(*seen.windows[tensor][dim]))
    (expr,) = (node.expr for node in problem.nodes if node.name == tensor)
    return np.asarray(width(*seen.boxes[tensor][expr.spatial[dim]]))
