"""Estimates over several sizes of symbols: tiles of a group whose sizes vary must be good at more than one (B11).

A tile as large as the extent at the pivot means the whole extent at every size, any other tile keeps its size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from tilec.ir.expr import Expr, variables
from tilec.scheduler.analysis.window_propagation import extent_of
from tilec.scheduler.tiling.cost_model import Estimate, Floats, Ints, Steps, estimate
from tilec.scheduler.tiling.tile_footprints import TileFootprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem


def estimate_at_all_sizes(
    problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps, wide: TileFootprints | None = None
) -> Estimate:
    """The estimate at the pivot; with further sizes the mean of objective and seconds over all of them, each in
    proportion to the sizes, and the most bytes held."""
    found = estimate(problem, sizes, steps, wide)
    if not problem.further:
        return found
    others = [_scaled(other, at_sizes(problem, other, sizes, steps), problem) for other in twins(problem)]
    count = 1 + len(others)
    return Estimate(
        _sum([found.objective, *(each.objective for each in others)]) / count,
        _sum([found.seconds, *(each.seconds for each in others)]) / count,
        np.maximum.reduce(np.broadcast_arrays(found.held, *(each.held for each in others))),
        found.moved,
    )


def twins(problem: TilingProblem) -> list[TilingProblem]:
    """The problem at each of the further sizes."""
    return [replace(problem, numbers=numbers, further=()) for numbers in problem.further]


def at_sizes(problem: TilingProblem, other: TilingProblem, sizes: Mapping[str, Ints], steps: Steps) -> Estimate:
    """The estimate of tiles that were made for the sizes of `problem` at those of `other`."""
    final, domains = problem.final, {node.name: node.expr.domain for node in problem.nodes}
    return estimate(
        other,
        {i: _moved(n, final.domain[i], problem, other) for i, n in sizes.items()},
        {node: {i: _moved(n, domains[node][i], problem, other) for i, n in of.items()} for node, of in steps.items()},
    )


def _moved(size: Ints, extent: Expr, problem: TilingProblem, other: TilingProblem) -> Ints:
    if not variables(extent):
        return size
    here, there = extent_of(extent, problem.numbers), extent_of(extent, other.numbers)
    return np.where(size >= here, there, np.minimum(size, there))


def _scaled(other: TilingProblem, found: Estimate, problem: TilingProblem) -> Estimate:
    here, there = (prod(int(n) for n in each.numbers.symbols.values()) for each in (problem, other))
    scale = max(1, here) / max(1, there)
    return replace(found, objective=found.objective * scale, seconds=found.seconds * scale)


def _sum(values: list[Floats]) -> Floats:
    return np.asarray(sum(np.broadcast_arrays(*values)), np.float64)
