"""Estimates over several sizes of symbols: tiles of a group whose sizes vary must be good at more than one (B09).

A tile as large as the extent at the pivot means the whole extent at every size, any other tile keeps its size, and so
does one of a single element where a core's level is filled by copies (`TilingProblem.takes_whole`). Only the candidates
that are best at the pivot are looked at elsewhere, those that take whole extents, or reduce whole ones in one step, and
those that cut them each by themselves: what is best of one kind at the pivot may be the worst at another size.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from tilec.ir.expr import Expr, variables
from tilec.scheduler.analysis.window_propagation import extent_of
from tilec.scheduler.tiling.cost_model import Estimate, estimate
from tilec.scheduler.tiling.reduce_loops import Ints, Steps
from tilec.scheduler.tiling.tiling_problem import TilingProblem

SHORTLIST = 16
"""Candidates of a kind that are looked at at further sizes."""

UNSEEN = 1e3
"""Times that candidates count that were not looked at there: they are taken only where nothing fits."""


def at_all_sizes(
    problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps, found: Estimate, shape: tuple[int, ...]
) -> Estimate:
    """The estimates `found` at the pivot, one for each candidate of a shape, with the mean of objective and seconds
    over all sizes, each in proportion to them, and the most bytes held there and at the limits, with one copy of what
    is loaded where several do not fit there; what is not on the short list ranks behind."""
    places = _shortlist(problem, sizes, steps, found, shape)
    here = {i: _at(n, shape, places) for i, n in sizes.items()}
    steps_here = {node: {i: _at(n, shape, places) for i, n in of.items()} for node, of in steps.items()}
    objective, seconds, held = found.objective[places], found.seconds[places], found.held[places]
    stages = found.stages[places]
    for numbers in problem.further:
        other = problem.at(numbers)
        there = at_sizes(problem, other, here, steps_here, stages).flat(places.shape)
        scale = proportion(problem, other)
        objective, seconds = objective + scale * there.objective, seconds + scale * there.seconds
        held = np.maximum(held, there.held)
    alone, single = np.zeros_like(held), np.ones_like(stages)
    for numbers in problem.limits:
        limit = problem.at(numbers)
        held = np.maximum(held, at_sizes(problem, limit, here, steps_here, stages).flat(places.shape).held)
        alone = np.maximum(alone, at_sizes(problem, limit, here, steps_here, single).flat(places.shape).held)
    tight = (held > problem.target.capacity) & (alone <= problem.target.capacity) & bool(problem.limits)
    held, stages = np.where(tight, alone, held), np.where(tight, single, stages)
    count = 1 + len(problem.further)
    mean, longest, most, copies = UNSEEN * found.objective, found.seconds.copy(), found.held.copy(), found.stages.copy()
    mean[places], longest[places], most[places], copies[places] = objective / count, seconds / count, held, stages
    return Estimate(mean, longest, most, found.moved, copies)


def at_sizes(
    problem: TilingProblem, other: TilingProblem, sizes: Mapping[str, Ints], steps: Steps, stages: Ints
) -> Estimate:
    """The estimate of tiles that were made for the sizes of `problem` at those of `other`."""
    final, domains = problem.group.final, {node.name: node.expr.domain for node in problem.group.nodes}
    return estimate(
        other,
        {i: _moved(n, final.domain[i], problem, other) for i, n in sizes.items()},
        {node: {i: _moved(n, domains[node][i], problem, other) for i, n in of.items()} for node, of in steps.items()},
        stages=stages,
    )


def _shortlist(
    problem: TilingProblem, sizes: Mapping[str, Ints], steps: Steps, found: Estimate, shape: tuple[int, ...]
) -> Ints:
    """Places of the best candidates of every kind: which extents that vary they take whole."""
    kind = np.zeros(prod(shape), np.int64)
    domains = {node.name: node.expr.domain for node in problem.group.nodes}
    cuts = [(n, problem.group.final.domain[iterator]) for iterator, n in sizes.items()]
    cuts += [(n, domains[node][iterator]) for node, of in steps.items() for iterator, n in of.items()]
    for n, extent in cuts:
        if variables(extent):
            taken = np.broadcast_to(n, shape).ravel()
            kind = 2 * kind + problem.takes_whole(taken, extent_of(extent, problem.numbers), extent)
    chosen = []
    for each in np.unique(kind):
        places = np.flatnonzero(kind == each)
        fitting = found.held[places] <= problem.target.capacity
        worth = np.where(fitting, found.objective[places], np.inf)
        chosen.append(places[np.lexsort((found.held[places], worth))[:SHORTLIST]])
    return np.concatenate(chosen)


def _at(values: Ints, shape: tuple[int, ...], places: Ints) -> Ints:
    return np.asarray(np.broadcast_to(values, shape).ravel()[places], np.int64)


def _moved(size: Ints, extent: Expr, problem: TilingProblem, other: TilingProblem) -> Ints:
    if not variables(extent):
        return size
    here, there = extent_of(extent, problem.numbers), extent_of(extent, other.numbers)
    return np.where(problem.takes_whole(size, here, extent), there, np.minimum(size, there))


def proportion(problem: TilingProblem, other: TilingProblem) -> float:
    """Sizes of the problem over those of another, so that a plan's time at large sizes does not outweigh the rest; the
    elements that its nodes compute, where sizes occur together: one may be nothing where another is large."""
    if problem.group.graph.scenarios:
        return max(1, _elements(problem)) / max(1, _elements(other))
    here, there = (prod(int(n) for n in each.numbers.symbols.values()) for each in (problem, other))
    return max(1, here) / max(1, there)


def _elements(problem: TilingProblem) -> int:
    """How often the bodies of all nodes are computed."""
    return sum(prod(extent_of(e, problem.numbers) for e in node.expr.extents) for node in problem.group.nodes)
