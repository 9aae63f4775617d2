"""core tile: what one task computes, chosen over arrays of candidates by a model of time (W17, W19, W21-W25).

A candidate's windows come from Propagate.  A task computes while its windows stream in, after it has staged what
needs a copy; tasks are dealt to cores, and a last task that the others wait for costs what it costs.  Windows larger
than the level are out of the question; where nothing fits, reduce steps shorten them (W09).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import isqrt, prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tilec.ir.expr import Access, Expr, TensorExpr, accesses, bound, operands, variables
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.scheduler.contraction import is_contraction
from tilec.scheduler.registers import RegisterTile
from tilec.scheduler.rows import rows_of
from tilec.scheduler.target import Target
from tilec.scheduler.windows import element_bytes, leaves, shapes_of, windows

Objective = Literal["time", "traffic", "footprint"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TASK = 50e-9
"""Seconds that a task costs beside its work."""

IMBALANCE = 0.2
"""Part of a task for which the other cores wait at the end, on average."""

OVERLAP = 0.5
"""Part of the shorter of computing and streaming that does not hide behind the longer."""

STEPS = 0.9
"""How much faster reduce steps must be expected to be where their sums go through a core's level."""

CHOICES = 12
"""Candidate sizes of an iterator."""


@dataclass(frozen=True, slots=True)
class CoreTile:
    """Tile sizes of the group's final node at a core's level, reduce steps of its first node, and loop orders.

    `seconds` is what the model expects, `order` the tile loops at the level of a core, outermost first.
    """

    sizes: Mapping[str, int]
    steps: Mapping[str, int]
    order: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Problem:
    """One group whose core tile is wanted.

    `outputs` are the tensors that leave it; `fine` allows tiles smaller than register tiles, but for the vector
    iterator of packed weights.
    """

    parts: Sequence[Sequence[Node]]
    tiles: Sequence[RegisterTile]
    graph: Graph
    target: Target
    numbers: Candidates
    outputs: tuple[str, ...] = ()
    objective: Objective = "time"
    steps: Mapping[str, int] = field(default_factory=dict)
    fine: bool = False

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes in topological order."""
        return tuple(node for part in self.parts for node in part)

    @property
    def final(self) -> TensorExpr:
        """The expression of the final node."""
        return self.nodes[-1].expr

    @property
    def shapes(self) -> dict[str, tuple[Expr, ...]]:
        """Shapes of the tensors that nodes make and read."""
        return shapes_of((node.expr for node in self.nodes), self.graph)

    def extent(self, iterator: str) -> int:
        """Extent of an iterator of the final node (what is likely, where it is symbolic)."""
        return int(self.numbers.size(self.final.domain[iterator]))

    def bytes_of(self, tensor: str) -> int:
        """Bytes of one element of a tensor."""
        return element_bytes(self.graph.tensors[tensor].ttype)


def core_tile(problem: Problem) -> CoreTile:
    """The best candidate; reduce steps are taken where nothing fits without, and wherever they pay."""
    staged = staged_operands(problem)
    best = _candidate(problem, staged)
    if not best.fits:
        best = _candidate(replace(problem, fine=True), staged)
    shorter = _shorter_steps(problem)
    worth = 1.0 if problem.target.threads > 1 else STEPS
    while shorter is not None:
        found = _candidate(shorter, staged)
        if best.fits and (not found.fits or found.tile.seconds >= best.tile.seconds * worth):
            break
        best, shorter = found, _shorter_steps(shorter)
    return best.tile


@dataclass(frozen=True, slots=True)
class _Candidate:
    tile: CoreTile
    fits: bool


def _candidate(problem: Problem, staged: tuple[str, ...]) -> _Candidate:
    """The fastest tile that fits (the smallest if none does); among equals the largest."""
    sizes = candidates(problem)
    seconds, held = _evaluate(problem, sizes, staged)
    fits = held <= problem.target.capacity
    key = np.atleast_1d(np.where(fits, seconds, np.inf) if fits.any() else held.astype(np.float64))
    volume = prod((n.astype(np.float64) for n in sizes.values()), start=np.ones(key.shape))
    best = int(np.lexsort((-volume, np.round(key, 12)))[0])
    chosen = {i: int(size[best]) for i, size in sizes.items()}
    tile = CoreTile(
        sizes={i: n for i, n in chosen.items() if n < problem.extent(i)},
        steps=problem.steps,
        order=_order(problem, chosen),
        seconds=float(np.atleast_1d(seconds)[best]),
    )
    return _Candidate(tile, bool(fits.any()))


def staged_operands(problem: Problem) -> tuple[str, ...]:
    """Operands from outside that are copied: guarded halos, and those laid out anew for a product's vectors."""
    made = {node.name for node in problem.nodes}
    found: dict[str, None] = {}
    for part, tile in zip(problem.parts, problem.tiles, strict=True):
        found |= {a.tensor: None for a in tile.vector.staged}
        for node in part:
            for access in accesses(node.expr) if node.expr.reduce else ():
                shape = problem.graph.tensors[access.tensor].shape
                if access.tensor not in made and leaves(access, node.expr, shape, problem.numbers):
                    found[access.tensor] = None
    return tuple(found)


def candidates(problem: Problem) -> dict[str, Ints]:
    """Sizes of every iterator of the final node that tiles may cut, all combinations, flat arrays."""
    final = problem.final
    moving = [i for i, e in zip(final.spatial, final.shape, strict=True) if bound(e) != 1]
    free = rows_of(problem.nodes).iterators if len(problem.parts) > 1 else tuple(moving)
    grain = _grain(problem)
    whole = {i: problem.extent(i) for i in moving}
    axes = [_sizes(whole[i], grain[i]) if i in free else [whole[i]] for i in moving]
    grid = np.meshgrid(*(np.asarray(a, np.int64) for a in axes), indexing="ij")
    return {i: g.ravel() for i, g in zip(moving, grid, strict=True)}


def _grain(problem: Problem) -> dict[str, int]:
    """What sizes are multiples of: the register tile, for rows the largest of any part."""
    shared = rows_of(problem.nodes).shared
    grain: dict[str, int] = {}
    for iterator in problem.final.spatial:
        if problem.fine and iterator != problem.tiles[-1].along:
            grain[iterator] = 1
            continue
        sizes = [problem.tiles[-1].sizes.get(iterator, problem.extent(iterator))]
        for part, tile in zip(problem.parts[:-1], problem.tiles[:-1], strict=True):
            twin = shared.get(iterator, {}).get(part[-1].name)
            if twin is not None:
                sizes.append(tile.sizes.get(twin, problem.extent(iterator)))
        grain[iterator] = max(sizes)
    return grain


def _sizes(extent: int, grain: int) -> list[int]:
    """Multiples of a grain that cut an extent evenly, thinned out, and the whole extent."""
    grain = max(1, grain)
    even = sorted({min(extent, -(-part // grain) * grain) for part in _parts(extent, -(-extent // grain))} | {extent})
    if len(even) <= CHOICES:
        return even
    places = np.unique(np.geomspace(1, len(even), CHOICES).astype(int) - 1)
    return [even[int(p)] for p in places]


def _parts(extent: int, most: int) -> Iterator[int]:
    """The sizes, each once, of the largest of n nearly equal parts of an extent, n from 1 to `most`."""
    n = 1
    while n <= most:
        rest = (extent - 1) // n
        yield rest + 1
        if rest == 0:
            break
        n = (extent - 1) // rest + 1


def _evaluate(problem: Problem, sizes: Mapping[str, Ints], staged: Sequence[str]) -> tuple[Floats, Ints]:
    """Seconds of the whole group and bytes held at a core's level, for every candidate.

    Sums that wait for the next reduce step in a core's level are copied there and back, unless units of a higher
    level hold them.
    """
    target, nodes = problem.target, problem.nodes
    made = {node.name for node in nodes}
    kept = {part[-1].name for part in problem.parts} | set(problem.outputs)
    boxes = windows(
        nodes, sizes, {i: np.asarray(n, np.int64) for i, n in problem.steps.items()}, problem.shapes, problem.numbers
    )
    held = {t: n * problem.bytes_of(t) for t, n in boxes.items() if t not in made or t in kept}
    footprint: Ints = np.asarray(sum(held.values()), np.int64)
    read: Ints = np.asarray(sum(n for t, n in held.items() if t not in made), np.int64)
    rounds = prod(-(-_reduce_extent(problem, i) // n) for i, n in problem.steps.items())
    written = held[nodes[-1].name] * 2
    copied: Ints = np.asarray(sum((held[t] for t in staged), 0), np.int64)
    tasks: Ints = np.asarray(prod(-(-problem.extent(i) // np.maximum(n, 1)) for i, n in sizes.items()), np.int64)
    work = _cycles(problem, sizes) / target.clock
    moved = read * rounds + written
    stream = moved / target.refill
    if rounds > 1 and target.threads == 1:
        copied = copied + 2 * held[nodes[-1].name]
    task = np.maximum(work, stream) + OVERLAP * np.minimum(work, stream) + copied * rounds / target.copy + TASK
    span = np.maximum(-(-tasks // target.cores) * task, tasks * task / target.cores + IMBALANCE * task)
    total = target.launch + np.where(tasks == 1, task, span)
    if problem.objective == "traffic":
        total = (tasks * moved).astype(np.float64) + total * 1e-3
    elif problem.objective == "footprint":
        total = footprint + total * 1e-3
    return total, np.broadcast_to(footprint, np.shape(tasks))


def _reduce_extent(problem: Problem, iterator: str) -> int:
    for node in problem.nodes:
        if iterator in node.expr.reduce:
            return int(problem.numbers.size(node.expr.domain[iterator]))
    return 1


def _cycles(problem: Problem, sizes: Mapping[str, Ints]) -> Floats:
    """Cycles of one task: the register tiles of all parts."""
    shared = rows_of(problem.nodes).shared
    total: Floats = np.zeros(1)
    for part, tile in zip(problem.parts, problem.tiles, strict=True):
        expr = part[-1].expr
        own = {names[expr.tensor]: sizes[i] for i, names in shared.items() if i in sizes}
        if expr is problem.final:
            own = dict(sizes)
        count: Ints = np.asarray(1, np.int64)
        for iterator in expr.spatial:
            extent = int(problem.numbers.size(expr.domain[iterator]))
            width = own.get(iterator, np.asarray(extent, np.int64))
            count = count * -(-width // tile.sizes.get(iterator, extent or 1))
        total = total + count * tile.cycles
    threads = problem.target.threads
    return total / threads if threads > 1 else total


def _shorter_steps(problem: Problem) -> Problem | None:
    """The problem with the longest reduce step halved; None when all steps are 1.

    A cache that reads a single pass over its operands through itself needs no steps for it.
    """
    anchor = problem.parts[0][0].expr
    passes = problem.target.levels[problem.target.core].managed == "implicit" and not is_contraction(anchor)
    if not anchor.reduce or len(problem.parts) > 1 or passes:
        return None
    steps = {i: problem.steps.get(i, int(problem.numbers.size(anchor.domain[i]))) for i in anchor.reduce}
    longest = max(steps, key=lambda i: steps[i])
    if steps[longest] <= 1:
        return None
    extent = int(problem.numbers.size(anchor.domain[longest]))
    half = max((d for d in _divisors(extent) if d <= steps[longest] // 2), default=1)
    return replace(problem, steps={**problem.steps, longest: half})


@lru_cache(maxsize=1024)
def _divisors(number: int) -> tuple[int, ...]:
    """Every divisor of a positive number, in pairs of small and large."""
    small = [d for d in range(1, isqrt(number) + 1) if number % d == 0]
    return (*small, *(number // d for d in small))


def _order(problem: Problem, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Tile loops at a core's level, outermost first: the loop that leaves most bytes in place runs innermost."""
    return kept_order(problem, {i: n for i, n in sizes.items() if n < problem.extent(i)}, sizes, 1 << 62)


def kept_order(problem: Problem, loops: Mapping[str, int], sizes: Mapping[str, int], capacity: int) -> tuple[str, ...]:
    """Loops of the final node sorted so that what stays in place while the inner ones run is large but fits."""
    nodes = problem.nodes
    arrays = {i: np.asarray(n, np.int64) for i, n in sizes.items()}
    base = windows(nodes, arrays, {}, problem.shapes, problem.numbers)
    made = {node.name for node in nodes}

    def kept(iterator: str) -> int:
        shared = rows_of(nodes).shared.get(iterator, {})
        total = 0
        for node in nodes:
            name = shared.get(node.name, iterator)
            for tensor in operands(node.expr):
                reads = [a for a in accesses(node.expr) if a.tensor == tensor]
                if tensor not in made and not any(_moves(a, name) for a in reads):
                    size = int(base[tensor]) * problem.bytes_of(tensor)
                    total += size if size <= capacity else 0
        return total

    return tuple(sorted(loops, key=lambda i: (kept(i), problem.final.spatial.index(i))))


def _moves(access: Access, iterator: str) -> bool:
    return any(iterator in variables(i) for i in access.index)
