"""Padding of rows in a core's level, so that rows that are read together begin in other banks (W37)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilec.ir.expr import operands
from tilec.scheduler.analysis.window_propagation import Ints, Window, propagate_windows, width
from tilec.scheduler.tiling.tile_footprints import tile_footprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem


def row_padding(row: int, access: int, banks: int) -> int:
    """Bytes behind a row of so many, so that rows that instructions read in pieces of `access` bytes, one below the
    other, lie in different pieces of the `banks` bytes that are served at once."""
    pieces = -(-row // access)
    return (pieces + (pieces % 2 == 0 and banks > access)) * access - row


def paddings(
    problem: TilingProblem, sizes: Mapping[str, Ints], steps: Mapping[str, Mapping[str, Ints]]
) -> dict[str, int]:
    """Tensor -> elements behind its rows in a core's level, for what units of matrices read and make in one tile."""
    parts = [part for part, tile in zip(problem.parts, problem.tiles, strict=True) if tile.unit]
    if not parts:
        return {}
    seen = tile_footprints(problem.nodes, sizes, problem.spread(steps), problem.shapes, problem.numbers)
    found: dict[str, int] = {}
    for part in parts:
        first, final = part[0].expr, part[-1].expr
        windows = propagate_windows(first, seen.boxes[first.tensor], problem.shapes, problem.numbers)
        rows = {tensor: windows[tensor].window for tensor in operands(first)}
        rows[final.tensor] = tuple(seen.boxes[final.tensor][i] for i in final.spatial)
        found |= {tensor: _padding(tensor, window, problem) for tensor, window in rows.items()}
    return {tensor: pad for tensor, pad in found.items() if pad}


def _padding(tensor: str, window: Window, problem: TilingProblem) -> int:
    """Elements behind the rows of a window."""
    level, size = problem.target.levels[problem.target.core], problem.held_bytes(tensor)
    if len(window) < 2:
        return 0
    row = int(np.max(width(*window[-1]))) * size
    return row_padding(row, level.alignment or 1, level.transaction) // size
