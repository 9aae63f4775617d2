"""core tile: what one task computes, chosen over arrays of candidates by the predicted time (W17, W19, W21, W25).

Windows larger than the level are out of the question; where nothing fits, reduce steps shorten them (W09), and steps
are taken wherever they pay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, isqrt, prod
from typing import NamedTuple

import numpy as np

from tilec.ir.plan import Sizes
from tilec.scheduler.analysis.contraction import is_contraction
from tilec.scheduler.analysis.window_propagation import extent_of
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.cost_model import Estimate, estimate, estimate_without_steps, lower_bounds
from tilec.scheduler.tiling.part_cycles import register_tiles
from tilec.scheduler.tiling.reduce_loops import Floats, Ints
from tilec.scheduler.tiling.register_tiles import RegisterTile
from tilec.scheduler.tiling.several_sizes import at_all_sizes, proportion
from tilec.scheduler.tiling.task_needs import task_needs
from tilec.scheduler.tiling.tile_candidates import MAX_CANDIDATES, candidates, tiled_iterators
from tilec.scheduler.tiling.tile_footprints import TileFootprints, tile_footprints
from tilec.scheduler.tiling.tiling_problem import TilingProblem


@dataclass(frozen=True, slots=True)
class LookEffort:
    """How closely a first look looks, and what is known of closer ones.

    sizes   candidates of an iterator
    gain    the fraction of what it finds that a closer look finds at best
    spread  how much less that fraction may be for a group than for others with the same final part, once two of these
            were looked at closely
    """

    sizes: int
    gain: float
    spread: float


FIRST_LOOK = LookEffort(4, 0.7, 1.0)
"""Of many cores, among which more sizes deal tasks more evenly, and of scratchpads, whose tiles need reduce steps, of
which a first look has none."""

FEW_CORES = 2
"""Cores with caches of which a first look tells more."""

FIRST_LOOK_OF_FEW = LookEffort(8, 0.93, 0.01)
"""Of few cores. On two, plans of six networks are predicted to take what they take with four sizes and 0.7, but for
0.15 %, and three of ten groups need no close look; with 16 cores small networks would lose up to a fifth. The spread
saves half of the close looks of MobileViT and Swin: of 1,136 13 would have found less, by at most 0.5 %, and plans
are predicted within 0.1 %. On many cores these fractions differ by a third from group to group."""

CLOSE_LOOK_GAIN = 0.7
"""Register tiles that fit a group better are tried where these may bring it to this fraction of what it takes."""

STEPPED = 3
"""Nodes of a group, those with the longest reductions, that reduce steps are tried for."""

ROUNDS = 12
"""Candidate reduce steps of a node."""

DEPTHS = 4
"""Powers of two of the depth of a unit of matrices that are tried as reduce steps."""

TIE = 1e-8
"""Relative difference of candidates that are not taken for equal."""


@dataclass(frozen=True, slots=True)
class TaskTile:
    """Tile sizes of the group's final node at a core's level, and reduce steps of its nodes.

    `registers` are the register tiles of its parts.  `objective` and `seconds` are predicted, `held` bytes of a core's
    level; `fits` says whether that is no more than it has.  Reduce loops keep `stages` copies of what they load.
    """

    sizes: Sizes
    steps: Mapping[str, Sizes]
    registers: tuple[RegisterTile, ...]
    objective: float
    seconds: float
    held: int
    fits: bool
    stages: int = 1


def task_tile(problem: TilingProblem) -> TaskTile:
    """The best candidate."""
    return task_tiles(problem, 1)[0]


class FirstLook(NamedTuple):
    """Bytes that a core's level must hold at least, as far as a few candidates show, about what the best tile comes to,
    and what a closer look finds at best; infinite if even the smallest tile does not fit."""

    held: int
    objective: float
    hoped: float


def look(problem: TilingProblem) -> FirstLook:
    """What a few candidates show of a group.

    Where caches hold tiles that is the mean over all sizes that tiles must be good at, and what fits at all of them. A
    scratchpad's further sizes are the ends of ranges, of which a few candidates say little.
    """
    held, objective = _rough(problem)
    further = problem.further if problem.target.is_cached and held <= problem.target.capacity else ()
    for other in map(problem.at, further):
        held, there = _rough(other)
        if held > problem.target.capacity:
            return FirstLook(held, inf, inf)
        objective += proportion(problem, other) * there
    mean = objective / (1 + len(further))
    return FirstLook(held, mean, look_effort(problem.target).gain * mean)


def look_effort(target: TargetModel) -> LookEffort:
    """How closely a first look looks on a target."""
    few = target.is_cached and target.cores <= FEW_CORES
    return FIRST_LOOK_OF_FEW if few else FIRST_LOOK


def _rough(problem: TilingProblem) -> tuple[int, float]:
    """What a few candidates hold at least and come to at best, at one size of every symbol."""
    sizes = candidates(problem, choices=look_effort(problem.target).sizes)
    if problem.group.chain is None:
        found = estimate(problem, sizes, {})
    else:
        leader = problem.group.chain.leader
        found = _stepped(problem, sizes, leader, _shorter(problem, leader) or [{}], {}).score
    held = int(np.min(found.held))
    if held > problem.target.capacity:
        held = least_held(problem)
    return held, float(np.min(found.objective)) if held <= problem.target.capacity else inf


def task_tiles(problem: TilingProblem, most: int, known: Sequence[TaskTile] = ()) -> tuple[TaskTile, ...]:
    """The best candidates, best first (W17): those that fit, or the smallest one if none does.

    Groups of several parts that fit a cache take no reduce steps: sums that go through it seldom pay.  Those that
    share a reduce loop always do, unless all of it stays above the level.  Steps of tiles whose bound exceeds `most`
    tiles, of these or of those `known` of the same group, are not tried.
    """
    whole = problem.group.chain is None or problem.group.accumulates_above
    trials = [_plain(problem, candidates(problem))] if whole else []
    limit = _limit(problem, trials, known, most)
    if len(problem.group.parts) == 1 or not problem.target.spills_sums or not any(trial.fits.any() for trial in trials):
        trials += _with_steps(problem, candidates(problem, most=MAX_CANDIDATES // ROUNDS), limit)
    if limit == inf and not any(trial.fits.any() for trial in trials):
        finer = candidates(problem, fine=True, most=MAX_CANDIDATES // ROUNDS)
        trials += [_plain(problem, finer)] if whole else []
        trials += _with_steps(problem, finer, limit)
    return _ranked(problem, trials, most)


@dataclass(frozen=True, slots=True)
class _Trial:
    """Candidates of a shape with reduce steps of the same nodes, and their scores one after the other."""

    shape: tuple[int, ...]
    sizes: Mapping[str, Ints]
    steps: Mapping[str, Mapping[str, Ints]]
    score: Estimate
    fits: np.ndarray

    def of(self, values: Ints, place: int) -> int:
        """What sizes or steps are for the candidate at a place."""
        return int(np.broadcast_to(values, self.shape)[np.unravel_index(place, self.shape)])


def _trial(
    problem: TilingProblem,
    sizes: Mapping[str, Ints],
    steps: Mapping[str, Mapping[str, Ints]],
    shape: tuple[int, ...],
    wide: TileFootprints | None = None,
) -> _Trial:
    found = estimate(problem, sizes, steps, wide).flat(shape)
    several = bool(problem.further or problem.limits)
    if several and bool((found.held <= problem.target.capacity).any()):  # none holds less elsewhere
        found = at_all_sizes(problem, sizes, steps, found, shape)
    return _Trial(shape, sizes, steps, found, np.asarray(found.held <= problem.target.capacity))


def _plain(problem: TilingProblem, sizes: Mapping[str, Ints]) -> _Trial:
    """Candidates without reduce steps."""
    return _trial(problem, sizes, {}, _grid(sizes) or (1,))


def _grid(sizes: Mapping[str, Ints]) -> tuple[int, ...]:
    """The shape of all combinations of sizes."""
    return np.broadcast_shapes(*(n.shape for n in sizes.values()))


def _worth(problem: TilingProblem, trial: _Trial) -> Floats:
    """What candidates are ranked by."""
    return np.where(trial.fits, trial.score.objective, np.inf) / _step_gain(problem.target, trial.steps)


def _limit(problem: TilingProblem, trials: Sequence[_Trial], known: Sequence[TaskTile], most: int) -> float:
    """What `most` candidates that fit do not exceed, trials and tiles that are known; infinite if there are fewer, or
    if reductions share a loop."""
    if problem.group.chain is not None:
        return inf
    worth = np.concatenate(
        [*(_worth(problem, trial) for trial in trials), [ranked(problem.target, tile) for tile in known if tile.fits]]
    )
    return float(np.partition(worth, most - 1)[most - 1]) if worth.size >= most else inf


def ranked(target: TargetModel, tile: TaskTile) -> float:
    """What a tile is ranked by."""
    return tile.objective / _step_gain(target, tile.steps)


def _step_gain(target: TargetModel, steps: Mapping[str, Mapping[str, object]]) -> float:
    """Relative time that a tile must stay below: less than 1 where sums of its reduce steps go through a core's
    level."""
    return target.costs.spilled_steps if target.spills_sums and steps else 1


def least_held(problem: TilingProblem) -> int:
    """Bytes that a core's level must hold at least: one element of the final node, all reductions one by one."""
    one = np.asarray(1, np.int64)
    sizes = dict.fromkeys(tiled_iterators(problem), one)
    cut = [*_steppable(problem), *((problem.group.chain.leader,) if problem.group.chain is not None else ())]
    steps = {name: dict.fromkeys(problem.group.sharing(name)[name], one) for name in cut}
    return int(np.max(task_needs(problem, sizes, steps)[3]))


def smaller(problem: TilingProblem, tile: TaskTile) -> Iterator[TaskTile]:
    """A tile with ever shorter reduce steps of the longest reduction that may be cut, then, with the shortest, ever
    smaller: the longest size is halved until all are 1."""
    for name in [problem.group.chain.leader] if problem.group.chain is not None else _steppable(problem)[:1]:
        expr = next(node.expr for node in problem.group.nodes if node.name == name)
        whole = {i: extent_of(expr.domain[i], problem.numbers) for i in expr.reduce}
        now = prod({**whole, **tile.steps.get(name, {})}.values())
        for steps in _shorter(problem, name):
            if prod({**whole, **steps}.values()) < now:
                tile = replace(tile, steps={**tile.steps, name: steps})
                yield tile
    sizes = {i: tile.sizes.get(i, problem.extent(i)) for i in problem.group.final.spatial}
    sizes = {i: n for i, n in sizes.items() if not problem.group.sinks.names or i in problem.group.sinks.aligned}
    while sizes and sizes[longest := max(sizes, key=lambda i: sizes[i])] > 1:
        sizes[longest] //= 2
        yield replace(tile, sizes=problem.narrowed(sizes))


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Candidate sizes, and what they need without reduce steps."""

    sizes: Mapping[str, Ints]
    wide: TileFootprints | None = None


def _with_steps(problem: TilingProblem, sizes: Mapping[str, Ints], limit: float) -> list[_Trial]:
    """Trials with reduce steps of one node, that of a shared loop if there is one, then of a second beside the best of
    these if nothing fits.  Of candidates that steps cannot bring below a limit there are none."""
    trials: list[_Trial] = []
    fixed: dict[str, Mapping[str, int]] = {}
    cut = _steppable(problem)
    every = _Tiles(sizes, estimate_without_steps(problem, sizes) if cut or problem.group.chain is not None else None)
    below = _below(problem, every, limit) if cut and limit < inf else every
    for turn in range(STEPPED):
        names = [problem.group.chain.leader] if problem.group.chain is not None and turn == 0 else cut
        found = [
            _stepped(problem, tiles.sizes, name, chain, fixed, tiles.wide)
            for name in names
            if name not in fixed
            and (tiles := every if below is not every and problem.group.leaves_gaps(name) else below) is not None
            and (chain := _shorter(problem, name))
        ]
        trials += found
        if not found or limit < inf or any(trial.fits.any() for trial in found):
            break
        smallest = min(found, key=lambda trial: int(np.min(trial.score.held)))
        place = int(np.argmin(smallest.score.held))
        fixed = {n: {i: smallest.of(s, place) for i, s in of.items()} for n, of in smallest.steps.items()}
    return trials


def _below(problem: TilingProblem, tiles: _Tiles, limit: float) -> _Tiles | None:
    """The candidates, in one row, that reduce steps may bring below a limit; None if there are none."""
    grid = _grid(tiles.sizes)
    least = lower_bounds(problem, tiles.sizes, tiles.wide) / _step_gain(problem.target, {"": {}})
    (places,) = np.nonzero(np.broadcast_to(least, grid or (1,)).ravel() <= limit * (1 + TIE))
    row = {i: np.broadcast_to(n, grid).ravel()[places] for i, n in tiles.sizes.items()}
    return _Tiles(row) if places.size else None


def _steppable(problem: TilingProblem) -> list[str]:
    """Reductions that may be cut by themselves: a cache that reads a single pass over its operands needs no steps for
    it."""
    shared = problem.group.chain.members if problem.group.chain is not None else ()
    implicit = problem.target.is_cached
    parts = zip(problem.group.parts, problem.tiles, strict=True)
    leading = [part[0] for part, tile in parts if not tile.streamed and (len(part) == 1 or not part[-1].expr.reduce)]
    anchors = [node.expr for node in leading if node.expr.reduce and node.name not in shared]
    cut = [e for e in anchors if is_contraction(e) or not implicit]
    length = {e.tensor: prod(extent_of(e.domain[i], problem.numbers) for i in e.reduce) for e in cut}
    return sorted((e.tensor for e in cut), key=lambda name: length[name], reverse=True)[:STEPPED]


def _shorter(problem: TilingProblem, name: str) -> list[dict[str, int]]:
    """Ever shorter reduce steps of a node: the longest is halved until all are 1.

    Those of a shared loop are powers of two, for a last step that is shorter costs it little. A reduction of a unit of
    matrices has steps of whole depths beside, powers of two of them, whose rows banks serve best.
    """
    expr = next(node.expr for node in problem.group.nodes if node.name == name)
    shared = problem.group.chain is not None and name == problem.group.chain.leader
    whole = {i: extent_of(expr.domain[i], problem.numbers) for i in expr.reduce}
    steps, found = dict(whole), list[dict[str, int]]()
    while steps[longest := max(steps, key=lambda i: steps[i])] > 1:
        now = steps[longest]
        divisors = (d for d in _divisors(whole[longest]) if d <= now // 2)
        steps[longest] = 1 << (now - 1).bit_length() - 1 if shared else max(divisors, default=1)
        found.append({i: n for i, n in steps.items() if n < whole[i]})
    found = _with_depths(problem, name, whole, found)
    places = np.unique(np.linspace(0, len(found) - 1, ROUNDS).astype(int)) if len(found) > ROUNDS else range(len(found))
    return [found[int(p)] for p in places]


def _with_depths(
    problem: TilingProblem, name: str, whole: Mapping[str, int], found: list[dict[str, int]]
) -> list[dict[str, int]]:
    """The steps, and those of powers of two of whole depths where a unit of matrices computes a node."""
    unit, depth = next(
        ((tile.unit, tile.vector.iterator) for part, tile in zip(problem.group.parts, problem.tiles, strict=False)
         if part[0].name == name), ("", "")
    )  # fmt: skip
    extents = (unit_.depth for unit_, _ in problem.target.matrices if unit_.name == unit)
    more = [{depth: n * 2**e} for n in extents for e in range(DEPTHS) if whole[depth] % (n * 2**e) == 0]
    more = [steps for steps in more if steps[depth] < whole[depth] and steps not in found]
    return sorted([*found, *more], key=lambda steps: -prod({**whole, **steps}.values()))


def _stepped(
    problem: TilingProblem,
    sizes: Mapping[str, Ints],
    node: str,
    chain: Sequence[Mapping[str, int]],
    fixed: Mapping[str, Mapping[str, int]],
    wide: TileFootprints | None = None,
) -> _Trial:
    """Every candidate tile with every step of a chain."""
    domain = next(n.expr.domain for n in problem.group.nodes if n.name == node)
    iterators = list(dict.fromkeys(i for steps in chain for i in steps))
    whole = {i: extent_of(domain[i], problem.numbers) for i in iterators}
    grid = _grid(sizes)
    each = {i: np.asarray([s.get(i, whole[i]) for s in chain], np.int64) for i in iterators}
    steps = {n: {i: np.asarray(s, np.int64) for i, s in of.items()} for n, of in fixed.items()}
    steps[node] = {i: n.reshape(-1, *(1,) * len(grid)) for i, n in each.items()}
    return _trial(problem, sizes, steps, (len(chain), *grid), wide)


def _ranked(problem: TilingProblem, trials: Sequence[_Trial], most: int) -> tuple[TaskTile, ...]:
    """Candidates of all trials by what they are worth; among equals those with the largest tiles."""
    worth = np.concatenate([_worth(problem, trial) for trial in trials])
    if not np.isfinite(worth).any():
        worth = np.concatenate([trial.score.held.astype(np.float64) for trial in trials])
    volumes = np.concatenate([_volume(trial) for trial in trials])
    found: list[TaskTile] = []
    ends = np.cumsum([trial.fits.size for trial in trials])
    for position in _first(_rounded(worth), -volumes, 4 * most):
        if not np.isfinite(worth[position]):
            break
        which = int(np.searchsorted(ends, position, side="right"))
        tile = _tile(problem, trials[which], int(position - (ends[which - 1] if which else 0)))
        if all((tile.sizes, tile.steps) != (other.sizes, other.steps) for other in found):
            found.append(tile)
        if len(found) == most:
            break
    return tuple(found)


def _first(keys: Floats, ties: Floats, count: int) -> Ints:
    """Places of the least keys, in order; those of equal keys by their ties."""
    last = np.partition(keys, min(count, keys.size) - 1)[min(count, keys.size) - 1]
    places = np.flatnonzero(keys <= last)
    return np.asarray(places[np.lexsort((ties[places], keys[places]))][:count], np.int64)


def _rounded(worth: Floats) -> Floats:
    """Ten significant digits: what differs less is equal on every machine."""
    with np.errstate(divide="ignore"):
        scale = 10.0 ** (9 - np.floor(np.log10(np.where(np.isfinite(worth) & (worth > 0), worth, 1.0))))
    return np.where(np.isfinite(worth), np.round(worth * scale) / scale, worth)


def _volume(trial: _Trial) -> Floats:
    volume = prod((n.astype(np.float64) for n in trial.sizes.values()), start=np.ones(1))
    return np.broadcast_to(volume, trial.shape).ravel()


def _tile(problem: TilingProblem, trial: _Trial, place: int) -> TaskTile:
    chosen = {i: trial.of(n, place) for i, n in trial.sizes.items()}
    steps = {node: {i: trial.of(n, place) for i, n in of.items()} for node, of in trial.steps.items()}
    domains = {node.name: node.expr.domain for node in problem.group.nodes}
    short = {
        node: {i: n for i, n in of.items() if n < extent_of(domains[node][i], problem.numbers)}
        for node, of in steps.items()
    }
    return TaskTile(
        sizes=problem.narrowed(chosen),
        steps={node: of for node, of in short.items() if of},
        registers=tuple(problem.tiles),
        objective=float(trial.score.objective[place]),
        seconds=float(trial.score.seconds[place]),
        held=int(trial.score.held[place]),
        fits=bool(trial.fits[place]),
        stages=int(trial.score.stages[place]),
    )


def fitted(problem: TilingProblem, tile: TaskTile, options: Sequence[Sequence[RegisterTile]]) -> list[RegisterTile]:
    """For every part the best of some register tiles in a core tile."""
    sizes = {i: np.asarray(n, np.int64) for i, n in {**_whole(problem), **tile.sizes}.items()}
    steps = {node: {i: np.asarray(n, np.int64) for i, n in of.items()} for node, of in tile.steps.items()}
    return register_tiles(problem, sizes, steps, options)


def _whole(problem: TilingProblem) -> dict[str, int]:
    return {i: problem.extent(i) for i in problem.group.final.spatial}


def extents_in(problem: TilingProblem, tile: TaskTile) -> list[dict[str, int]]:
    """For every part how far the iterators of its first node run in a task."""
    sizes = {i: np.asarray(n, np.int64) for i, n in {**_whole(problem), **tile.sizes}.items()}
    boxes = problem.footprints(sizes, {}).boxes
    if tile.steps:
        steps = {node: {i: np.asarray(n, np.int64) for i, n in of.items()} for node, of in tile.steps.items()}
        inside = frozenset(name for node, of in tile.steps.items() for name in problem.group.inside(node, tuple(of)))
        wide, numbers = problem.footprints(sizes, {}), problem.numbers
        steps = problem.group.spread(steps)
        boxes = tile_footprints(
            problem.group.nodes, sizes, steps, problem.group.shapes, numbers, inside=inside, wide=wide
        ).boxes
    return [
        {i: int(hi - lo) for i, (lo, hi) in boxes.get(part[0].name, {}).items() if i in part[0].expr.spatial}
        for part in problem.group.parts
    ]


@lru_cache(maxsize=1024)
def _divisors(number: int) -> tuple[int, ...]:
    """Every divisor of a positive number, in pairs of small and large."""
    small = [d for d in range(1, isqrt(number) + 1) if number % d == 0]
    return (*small, *(number // d for d in small))
