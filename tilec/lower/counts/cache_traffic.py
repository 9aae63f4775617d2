"""Predicted traffic of a cache that a program does not name: bytes that it fetches from and writes to the level below.

A cache keeps what was used last. What a loop reads again in its next iteration is still there if all that one iteration
touches fits (reuse distances; Mattson et al., IBM Systems Journal 1970, here of tiles): then the loop fetches every
element once, else each iteration fetches anew.

Tasks run on several cores at once, each core the next one in order and all in lockstep. So the innermost spread loops,
as far as there are cores for their tasks, stand inside the serial loops of a task: cores that read the same tile fetch
it once. Several instances of a cache share the tasks evenly, in order; what two of them read each fetches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from math import inf, prod
from types import MappingProxyType

import numpy as np

from tilec.ir.expr import Binary, Call, Const, Expr, Var, substitute
from tilec.ir.intervals import Ints
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Program
from tilec.ir.types import TTYPES
from tilec.lower.counts.contiguous_accesses import ContiguousAccess, contiguous_accesses
from tilec.lower.counts.loop_positions import Positions, Table, joined
from tilec.lower.counts.transfers import Around, Span, Transfers, length, transfers

_NO_SYMBOLS: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """A cache below tile level `above`: its name, bytes of one instance, the number of instances, the cores that all of
    them together serve, and whether it fetches what is stored through it."""

    name: str
    above: str
    capacity: float
    instances: int
    cores: int
    write_allocate: bool = False

    @property
    def total(self) -> float:
        """Bytes of all instances."""
        return self.capacity * self.instances


@dataclass(frozen=True, slots=True)
class Touched:
    """Bytes of a tensor that a cache fetches from the level below and writes back to it in a program that finds it
    empty, and the bytes of the tensor that the program reads or writes at all."""

    fetched: float
    written: float
    distinct: float


def cache_levels(levels: Sequence[PlanLevel], tiled: Collection[str]) -> tuple[CacheLevel, ...]:
    """The caches among `levels`, lowest first, that hold no tiles and fill a level of `tiled`."""
    highest = max((place for place, level in enumerate(levels) if level.name in tiled), default=0)
    between = [place for place, level in enumerate(levels[:highest]) if place and level.name not in tiled]
    return tuple(cache_level(levels, place, tiled) for place in between if levels[place].managed == "implicit")


def cache_level(levels: Sequence[PlanLevel], place: int, tiled: Collection[str] | None = None) -> CacheLevel:
    """The cache at a place of `levels`, below the next one that is `tiled` (None: all are)."""
    level = levels[place]
    above = next(n for n in range(place + 1, len(levels)) if tiled is None or levels[n].name in tiled)
    return CacheLevel(
        level.name,
        levels[above].name,
        inf if level.capacity is None else level.capacity,
        prod(other.units for other in levels[: place + 1]),
        prod(other.units for other in levels[: above + 1]),
        level.write_allocate,
    )


def cache_traffic(program: Program, cache: CacheLevel, symbols: Mapping[str, int] = _NO_SYMBOLS) -> dict[str, Touched]:
    """Tensor -> bytes that pass a cache in one run of a program. Raises KeyError for a symbol without a value."""
    every = transfers(program, symbols)
    rank = every.rank[cache.above]
    passing = [a for a in contiguous_accesses(every) if every.rank[a.below.level] < rank <= every.rank[a.held.level]]
    return traffic_of_accesses(passing, every, cache)


def traffic_of_accesses(passing: Sequence[ContiguousAccess], every: Transfers, cache: CacheLevel) -> dict[str, Touched]:
    """Tensor -> bytes that accesses of a program, all that pass the cache, make it move."""
    rank = every.rank[cache.above]
    splits = _splits(passing, every, rank, cache)
    root = _Loop("", 1)
    accesses: list[_Access] = []
    for each in passing:
        split = splits[_nest(each, rank)[:1]]
        accesses.append(_access(each, every, rank, split))
        root.insert(accesses[-1], split, every.positions.extents)
    model = _Model(every.positions, cache.capacity)
    stored = {(access.tensor, access.stored) for access in accesses}
    return {
        tensor: Touched(
            model.moved(root, tensor, stored=False) if (tensor, False) in stored else 0.0,
            model.moved(root, tensor, stored=True) if (tensor, True) in stored else 0.0,
            model.distinct(root, tensor, None),
        )
        for tensor in dict.fromkeys(access.tensor for access in accesses)
    }


@dataclass(frozen=True, slots=True)
class _Split:
    """A nest of spread loops as it runs: the loop over instances of a cache, loops over waves of tasks in order,
    variables that run side by side, and spread variables in terms of all of these."""

    instance: str
    waves: tuple[str, ...]
    lanes: frozenset[str]
    values: Mapping[str, Expr]

    def placed(self, spans: Sequence[Span]) -> tuple[Span, ...]:
        """Spans in terms of the loops as they run."""
        return tuple((substitute(lo, self.values), substitute(hi, self.values)) for lo, hi in spans)


@dataclass(frozen=True, slots=True)
class _Access:
    """An access under loops in the order in which they run on all cores together, and beside `lanes`. `most` are the
    bytes of its tensor, `scattered` whether its indices are data: executions then meet different elements. Where one of
    `ranges` is empty, nothing is touched."""

    tensor: str
    stored: bool
    scattered: bool
    bits: float
    most: float
    spans: tuple[Span, ...]
    ranges: tuple[Span, ...]
    loops: tuple[str, ...]
    lanes: frozenset[str]
    ragged: tuple[Table, ...]


def _nest(access: ContiguousAccess, rank: int) -> tuple[Around, ...]:
    """The loops around an access that spread tasks, outermost first."""
    return tuple(loop for loop in access.around if loop.rank is not None and loop.rank <= rank)


def _splits(
    passing: Sequence[ContiguousAccess], every: Transfers, rank: int, cache: CacheLevel
) -> dict[tuple[Around, ...], _Split]:
    """Outermost spread loop -> its nest as it runs, the longest of those that begin with it. Blocks of a lower level
    that run one after another have a nest each."""
    nests = sorted((_nest(each, rank) for each in passing), key=len)
    return {outermost: _split(nest, every, cache) for outermost, nest in {nest[:1]: nest for nest in nests}.items()}


def _split(nest: Sequence[Around], every: Transfers, cache: CacheLevel) -> _Split:
    """The innermost spread loops run on all cores of an instance at once while there are cores for them; the one that
    does not fit is cut into waves. Instances take consecutive parts of the outermost loop, and of a stripe of it the
    iterations come innermost."""
    spread = tuple(loop.variable for loop in nest)
    positions = every.positions
    left = max(1, cache.cores // cache.instances)
    waves: list[str] = []
    lanes: set[str] = set()
    values: dict[str, Expr] = {}
    instance = ""

    def cut(variable: str, outer: str, inner: str, width: int) -> None:
        """`variable` = `outer` * width + `inner`, the last one repeated where the width does not divide it."""
        extent = positions.extents[variable]
        positions.extents.update({outer: -(-extent // width), inner: width})
        at = Binary("+", Binary("*", Var(outer), Const(width)), Var(inner))
        values[variable] = Call("minimum", (at, Const(extent - 1)))

    if spread and cache.instances > 1 and positions.extents[spread[0]] > 1:
        instance, rest = f"{spread[0]} instance", f"{spread[0]} of instance"
        cut(spread[0], instance, rest, -(-positions.extents[spread[0]] // cache.instances))
        spread = (rest, *spread[1:])
    if len(spread) > 1 and nest[0].stripe > 1:
        stripe, along = f"{spread[0]} stripe", f"{spread[0]} of stripe"
        cut(spread[0], stripe, along, nest[0].stripe)
        spread = (stripe, *spread[1:], along)
    for variable in reversed(spread):
        extent = positions.extents[variable]
        if extent <= left:
            lanes.add(variable)
            left //= max(1, extent)
        elif left == 1:
            waves.insert(0, variable)
        else:
            cut(variable, f"{variable} wave", f"{variable} lane", left)
            waves.insert(0, f"{variable} wave")
            lanes.add(f"{variable} lane")
            left = 1
    chained = {variable: substitute(value, values) for variable, value in values.items()}
    return _Split(instance, tuple(waves), frozenset(lanes), chained)


def _access(each: ContiguousAccess, every: Transfers, rank: int, split: _Split) -> _Access:
    tasks = [loop.rank is not None and loop.rank <= rank for loop in each.around]
    first = tasks.index(True) if any(tasks) else 0
    serial = [(place, loop) for place, loop in enumerate(each.around) if loop.rank is None]
    outer = [loop.variable for place, loop in serial if place < first]
    inner = [loop.variable for place, loop in serial if place >= first]
    instance = (split.instance,) if split.instance else ()
    lanes = split.lanes | {
        a.variable for a in each.around if a.rank is not None and rank < a.rank <= every.rank[each.held.level]
    }
    bits = TTYPES[each.below.ttype].bits
    whole = prod(int(every.positions.table(size).values) for size in each.below.shape)
    return _Access(
        each.below.tensor,
        each.stored,
        each.gathered,
        bits,
        whole * bits / 8,
        split.placed((*(span for span, _ in each.inner), *each.outer)),
        split.placed(each.ranges),
        (*instance, *outer, *split.waves, *inner),
        lanes,
        tuple(every.ragged(loop for _, loop in serial)),
    )


@dataclass(slots=True)
class _Loop:
    """A loop with what is accessed directly in its body and the loops in it; `apart`: each iteration in a cache of its
    own."""

    variable: str
    trips: int
    apart: bool = False
    accesses: list[_Access] = field(default_factory=list)
    inner: dict[str, _Loop] = field(default_factory=dict)

    def insert(self, access: _Access, split: _Split, trips: Mapping[str, int]) -> None:
        """Put an access into the tree, under all of its loops."""
        at = self
        for variable in access.loops:
            loop = _Loop(variable, trips[variable], variable == split.instance)
            at = at.inner.setdefault(variable, loop)
        at.accesses.append(access)

    def walk(self) -> Iterator[_Access]:
        """All accesses in the loop."""
        yield from self.accesses
        for loop in self.inner.values():
            yield from loop.walk()


@dataclass(frozen=True)
class _Model:
    positions: Positions
    capacity: float
    sizes: dict[tuple[int, str, bool | None, bool], float] = field(default_factory=dict)

    def moved(self, loop: _Loop, tensor: str, stored: bool) -> float:
        """Bytes of a tensor that one execution of a loop misses, with an empty cache at its start."""
        apart = loop.apart or any(inner.apart for inner in loop.inner.values())
        if not apart and self.fits(loop):
            return self.distinct(loop, tensor, stored)
        body = sum(
            self.size((access,), access.loops)
            for access in loop.accesses
            if (access.tensor, access.stored) == (tensor, stored)
        )
        return loop.trips * (body + sum(self.moved(each, tensor, stored) for each in loop.inner.values()))

    def fits(self, loop: _Loop) -> bool:
        """Whether all that one iteration touches fits."""
        tensors = dict.fromkeys(access.tensor for access in loop.walk())
        return sum(self.distinct(loop, tensor, None, once=True) for tensor in tensors) <= self.capacity

    def distinct(self, loop: _Loop, tensor: str, stored: bool | None, once: bool = False) -> float:
        """Bytes of a tensor that a loop (one iteration with `once`) touches, reads or stores or both (None)."""
        key = (id(loop), tensor, stored, once)
        if key not in self.sizes:
            chosen = [a for a in loop.walk() if a.tensor == tensor and stored in (None, a.stored)]
            depth = chosen[0].loops.index(loop.variable) + once if loop.variable and chosen else 0
            self.sizes[key] = self.size(chosen, chosen[0].loops[:depth]) if chosen else 0.0
        return self.sizes[key]

    def size(self, accesses: Sequence[_Access], fixed: Sequence[str]) -> float:
        """Bytes that accesses of one tensor touch over all loops but the `fixed` ones, averaged over these."""
        scattered = [access for access in accesses if access.scattered]
        windows = [access for access in accesses if not access.scattered]
        size = self._hull(windows, fixed) if windows else 0.0
        return min(size + sum(self._all(access, fixed) for access in scattered), accesses[0].most)

    def _hull(self, accesses: Sequence[_Access], fixed: Sequence[str]) -> float:
        """Bytes of the hull of windows."""
        factors: list[Table] = []
        for spans in zip(*(access.spans for access in accesses), strict=True):
            los = [self._extreme(lo, fixed, np.min) for lo, _ in spans]
            his = [self._extreme(hi, fixed, np.max) for _, hi in spans]
            lo, hi = (
                reduce(lambda a, b: joined(a, b, np.minimum), los),
                reduce(lambda a, b: joined(a, b, np.maximum), his),
            )
            factors.append(joined(hi, lo, lambda a, b: np.maximum(a - b, 0)))
        factors += _within(accesses[0], fixed) if len(accesses) == 1 else []
        if all(access.ranges for access in accesses):
            factors.append(reduce(lambda a, b: joined(a, b, np.maximum), map(partial(self._taken, fixed), accesses)))
        total = self.positions.sum(factors, list(fixed))
        return total / max(1, prod(self.positions.extents[each] for each in fixed)) * accesses[0].bits / 8

    def _taken(self, fixed: Sequence[str], access: _Access) -> Table:
        """1 where an access touches anything in some iteration of all loops but the `fixed` ones."""
        tables = (self._extreme(length(span), fixed, np.max) for span in access.ranges)
        return reduce(lambda a, b: joined(a, b, np.multiply), tables)

    def _all(self, access: _Access, fixed: Sequence[str]) -> float:
        """Bytes of all executions, as if they met different elements."""
        every = [self.positions.table(length(span)) for span in (*access.spans, *access.ranges)]
        loops = {loop for table in every for loop in table.loops} | {*access.loops, *access.lanes, *fixed}
        total = self.positions.sum([*every, *_within(access, fixed)], sorted(loops))
        return total / max(1, prod(self.positions.extents[each] for each in fixed)) * access.bits / 8

    def _extreme(self, end: Expr, fixed: Sequence[str], extremum: Callable[..., Ints]) -> Table:
        """The smallest or largest value of an end over all loops but the `fixed` ones."""
        table = self.positions.table(end)
        axes = tuple(axis for axis, loop in enumerate(table.loops) if loop not in fixed)
        if not axes:
            return table
        empty = any(table.values.shape[axis] == 0 for axis in axes)
        remaining = tuple(loop for loop in table.loops if loop in fixed)
        if empty:
            return Table(remaining, np.zeros([self.positions.extents[loop] for loop in remaining], np.int64))
        return Table(remaining, np.asarray(extremum(table.values, axis=axes)))


def _within(access: _Access, fixed: Sequence[str]) -> list[Table]:
    """Indicators of fixed loops of an access whose extents depend on other fixed ones."""
    return [table for table in access.ragged if set(table.loops) <= set(fixed)]
