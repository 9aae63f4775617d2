"""A cache of lines, least recently used first out, fed with the accesses of programs in the order in which cores run
them: what predictions of cache traffic are judged by."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from tilec.ir.expr import Expr, accesses, variables
from tilec.ir.intervals import Candidates
from tilec.ir.program import Allocate, Buffer, ComputeTile, LoadTiles, Loop, Program, Statement, StoreTiles
from tilec.ir.propagate import propagate
from tilec.ir.reads import is_gathered
from tilec.ir.scopes import scope_ranks
from tilec.ir.types import TTYPES

LINE = 128
Env = Mapping[str, object]


@dataclass
class Lru:
    """A cache of `capacity` bytes: bytes fetched from and written to the level below. `places` are the first lines of
    tensors, `top` is behind all of them."""

    capacity: int
    write_allocate: bool = False
    fetched: int = 0
    written: int = 0
    lines: OrderedDict[int, bool] = field(default_factory=OrderedDict)
    places: dict[str, int] = field(default_factory=dict)
    top: int = 0

    def place(self, tensor: str, size: int) -> int:
        """The first line of a tensor."""
        if tensor not in self.places:
            self.places[tensor], self.top = self.top, self.top + -(-size // LINE)
        return self.places[tensor]

    def touch(self, lines: Sequence[int], stored: bool) -> None:
        """Read or write lines; a line that is written whole is not fetched."""
        held, most = self.lines, self.capacity // LINE
        for line in lines:
            dirty = held.pop(line, None)
            if dirty is None:
                self.fetched += 0 if stored and not self.write_allocate else LINE
                if len(held) >= most:
                    self.written += LINE * held.popitem(last=False)[1]
            held[line] = stored or bool(dirty)

    def flush(self, tensors: Mapping[str, int], places: Mapping[str, int]) -> None:
        """Write what is left of tensors, which have so many bytes and begin at these lines."""
        for tensor, size in tensors.items():
            first = places[tensor]
            self.written += LINE * sum(self.lines.get(line, False) for line in range(first, first + -(-size // LINE)))


def run(program: Program, caches: Sequence[Lru], above: str, cores: int, names: Mapping[str, str]) -> None:
    """One run of a program: what comes to level `above` and higher ones from below it passes the caches, which share
    the cores and, in consecutive parts, the tasks; `names` are those of the tensors."""
    _Run(program, caches, above, cores, names).body(program.body, {}, None)


class _Run:
    def __init__(
        self, program: Program, caches: Sequence[Lru], above: str, cores: int, names: Mapping[str, str]
    ) -> None:
        self.caches, self.cache, self.cores, self.names = caches, caches[0], cores // len(caches), names
        self.random = np.random.default_rng(0)
        self.rank = {level.name: n for n, level in enumerate(program.levels)}
        self.above = self.rank[above]
        self.scopes = scope_ranks(program.levels)
        self.buffers: dict[str, Buffer] = {b.name: b for b in program.parameters}
        self.shapes = {b.tensor: b.shape for b in program.parameters}
        self._collect(program.body)

    def _collect(self, body: Iterable[Statement]) -> None:
        for statement in body:
            if isinstance(statement, Allocate):
                self.buffers[statement.buffer.name] = statement.buffer
            if isinstance(statement, ComputeTile):
                self.shapes[statement.expr.tensor] = statement.expr.shape
            if isinstance(statement, Loop):
                self._collect(statement.body)

    def body(self, body: Iterable[Statement], env: Env, lanes: int | None) -> None:
        """Statements; `lanes` tasks at once once tasks are chosen."""
        for statement in body:
            match statement:
                case Loop() if statement.kind == "serial":
                    for i in range(int(np.max(self._values(statement.extent, env, 1)))):
                        self.body(statement.body, {**env, statement.variable: i}, lanes)
                case Loop() if self.scopes[statement.scope] > self.above or lanes is not None:
                    self._units(statement, env, lanes)
                case Loop():
                    self._tasks(statement, env)
                case LoadTiles(target, source):
                    upper, lower = self.buffers[target], self.buffers[source]
                    self._moved(upper, lower, (upper.lo, upper.hi), env, stored=False)
                case StoreTiles(target, source):
                    upper, lower = self.buffers[source], self.buffers[target]
                    self._moved(upper, lower, (statement.lo or upper.lo, statement.hi or upper.hi), env, stored=True)
                case ComputeTile():
                    self._computed(statement, env)

    def _units(self, loop: Loop, env: Env, lanes: int | None) -> None:
        """Units of a task side by side: one more axis."""
        count = int(np.max(self._values(loop.extent, env, 1)))
        each = {name: np.repeat(value, count) if np.ndim(value) else value for name, value in env.items()}
        self.body(loop.body, {**each, loop.variable: np.tile(np.arange(count), lanes or 1)}, (lanes or 1) * count)

    def _tasks(self, loop: Loop, env: Env) -> None:
        """Tasks in waves of as many as there are cores."""
        inner, variables = loop, [(loop.variable, loop.extent)]
        while True:
            deeper = [s for s in inner.body if isinstance(s, Loop)]
            spread = len(deeper) == 1 and deeper[0].kind == "spread"
            if not spread or self.scopes[deeper[0].scope] > self.above or len(deeper) < len(self._acting(inner.body)):
                break
            inner = deeper[0]
            variables.append((inner.variable, inner.extent))
        sizes = [int(np.max(self._values(extent, env, 1))) for _, extent in variables]
        share = -(-sizes[0] // len(self.caches)) * prod(sizes[1:])
        row, rest = np.divmod(np.arange(prod(sizes)), prod(sizes[1:]))
        order = np.lexsort((row % loop.stripe, rest, row // loop.stripe))
        for number, cache in enumerate(self.caches):
            self.cache, end = cache, min((number + 1) * share, prod(sizes))
            for first in range(number * share, end, self.cores):
                places = np.unravel_index(order[first : min(first + self.cores, end)], sizes)
                at = {name: place for (name, _), place in zip(variables, places, strict=True)}
                self.body(inner.body, {**env, **at}, len(places[0]))
        self.cache = self.caches[0]

    def _acting(self, body: Iterable[Statement]) -> list[Statement]:
        return [s for s in body if not isinstance(s, Allocate)]

    def _passes(self, upper: Buffer, lower: Buffer) -> bool:
        return self.rank[lower.level] < self.above <= self.rank[upper.level]

    def _moved(self, upper: Buffer, lower: Buffer, ends: Sequence[Sequence[Expr]], env: Env, stored: bool) -> None:
        if self._passes(upper, lower):
            lo = np.maximum(self._ends(ends[0], env), self._ends(lower.lo, env))
            hi = np.minimum(self._ends(ends[1], env), self._ends(lower.hi, env))
            self._touch(lower, lo, hi, stored)

    def _computed(self, tile: ComputeTile, env: Env) -> None:
        target = self.buffers[tile.target]
        plain = {t: self.buffers[name] for t, name in tile.operands if self._passes(target, self.buffers[name])}
        if plain:
            box = {i: (self._values(lo, env), self._values(hi, env)) for i, lo, hi in tile.box}
            windows = propagate(tile.expr, box, self.shapes, Candidates({**env}), clip=True)
            for tensor, lower in plain.items():
                if is_gathered(tile.expr, tensor):
                    self._gathered(tile, lower, box)
                    continue
                lo, hi = (np.stack(np.broadcast_arrays(*side), -1) for side in zip(*windows[tensor], strict=True))
                self._touch(lower, np.atleast_2d(lo), np.atleast_2d(hi), stored=False)

    def _gathered(self, tile: ComputeTile, lower: Buffer, box: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> None:
        """Data-dependent reads at random places, one for every point of the iterators in the data's index."""
        shape = np.asarray([int(self._values(extent, {}, 1)[0]) for extent in self.shapes[lower.tensor]])
        for access in dict.fromkeys(a for a in accesses(tile.expr) if a.tensor == lower.tensor):
            by_data = np.asarray([bool(accesses(index)) for index in access.index])
            moving = {i for index in access.index if accesses(index) for i in variables(index) & box.keys()}
            points = int(np.max(np.prod([np.broadcast_to(box[i][1] - box[i][0], self._lanes(box)) for i in moving], 0)))
            places = self.random.integers(0, shape, (points * self._lanes(box), len(shape)))
            lo, hi = np.where(by_data, places, 0), np.where(by_data, places + 1, shape)
            self._touch(lower, lo, hi, stored=False)

    def _lanes(self, box: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> int:
        return max((np.size(end) for ends in box.values() for end in ends), default=1)

    def _touch(self, lower: Buffer, lo: np.ndarray, hi: np.ndarray, stored: bool) -> None:
        shape = [int(self._values(extent, {}, 1)[0]) for extent in self.shapes[lower.tensor]]
        lo, hi = np.maximum(lo, 0), np.minimum(hi, shape)
        order = lower.layout or tuple(range(len(shape)))
        ttype = TTYPES[lower.ttype]
        size = ttype.bits // 8
        name = self.names.get(lower.tensor, lower.tensor)
        first = self.caches[0].place(name, prod(shape) * size)
        for window in np.unique(np.concatenate([lo, hi], axis=1), axis=0):
            begin, end = np.split(window, 2)
            if (begin < end).all():
                self.cache.touch(list(_lines(begin, end, shape, order, size, first)), stored)

    def _ends(self, ends: Sequence[Expr], env: Env) -> np.ndarray:
        values = [self._values(end, env) for end in ends]
        return np.atleast_2d(np.stack(np.broadcast_arrays(*values), -1)) if values else np.zeros((1, 0), np.int64)

    def _values(self, expr: Expr, env: Env, least: int = 0) -> np.ndarray:
        values = np.asarray(Candidates({**env}).size(expr))
        return np.atleast_1d(values) if least else values


def _lines(
    begin: np.ndarray, end: np.ndarray, shape: Sequence[int], order: Sequence[int], size: int, first: int
) -> Iterator[int]:
    """Lines of a window of a tensor that is stored in an order of dimensions."""
    starts, stride, width = np.zeros(1, np.int64), 1, 1
    whole = True
    for dim in reversed(order):
        if whole:
            starts = starts + begin[dim] * stride
            width = (end[dim] - begin[dim]) * stride
        else:
            starts = (starts[:, None] + np.arange(begin[dim], end[dim]) * stride).ravel()
        whole = whole and end[dim] - begin[dim] == shape[dim]
        stride *= shape[dim]
    lowest, highest = starts * size // LINE, ((starts + width) * size - 1) // LINE
    most = int((highest - lowest).max()) + 1
    lines = lowest[:, None] + np.arange(most)
    yield from (np.unique(lines[lines <= highest[:, None]]) + first).tolist()
