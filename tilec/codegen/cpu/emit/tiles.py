"""One tile in TIR: loops over its runs, an unrolled body, accumulators in registers across the reduce loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import product
from math import gcd

from tvm import tirx
from tvm.tirx.script.builder import ir as I  # noqa: N812

from tilec.codegen.cpu.emit.dot_functions import dot
from tilec.codegen.cpu.emit.indices import Indices
from tilec.codegen.cpu.emit.kernel_function import Buffer
from tilec.codegen.cpu.emit.memory_access import Memories, element, stored
from tilec.codegen.cpu.emit.prefetch import fetch
from tilec.codegen.cpu.emit.scalar_functions import (
    NESTED,
    combined,
    combiner,
    convert,
    grown,
    is_float,
    multiply_add,
    neutral,
)
from tilec.codegen.cpu.emit.values import Point, Values
from tilec.codegen.cpu.emit.vector_ops import (
    PrimExpr,
    bind,
    constant,
    fold_together,
    int64,
    register,
    splat,
    sum_of_lanes,
    transposed,
)
from tilec.codegen.cpu.kernel_ir import Blocking, Tile
from tilec.codegen.cpu.stride_analysis import displacement
from tilec.codegen.cpu.strip_mining import Strip, neighbours
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.algebra import polynomial
from tilec.ir.dots import DOTS
from tilec.ir.expr import Access, Binary, Call, Expr, constant_value
from tilec.ir.scalars import is_weak
from tilec.ir.vector_pieces import vector_pieces
from tilec.spec.machine_costs import CpuCosts


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A register: a local variable of `lanes` elements."""

    buffer: Buffer
    lanes: int

    def get(self) -> PrimExpr:
        """The partial result."""
        return tirx.BufferLoad(self.buffer, [int64(0)])

    def set(self, value: PrimExpr) -> None:
        """Replace the partial result."""
        I.buffer_store(self.buffer, value, [int64(0)])


def emit_tile(tile: Tile, target: CpuTarget, memories: Memories, indices: Indices) -> None:
    """Print a tile at the current position of the IR builder; `indices` knows the loop variables around it."""
    assert tile.blocking is not None
    _Printer(tile, tile.blocking, target.costs, memories, indices).spatial(0, {})


class _Printer:
    """Prints one tile. `widths` says which offsets of every open dimension the body covers."""

    def __init__(self, tile: Tile, blocking: Blocking, costs: CpuCosts, memories: Memories, indices: Indices) -> None:
        self.tile = tile
        self.cut = blocking
        self.costs = costs
        self.memories = memories
        self.values = Values(tile, blocking.vector, memories, indices)
        self.place = self.values.place(tile.target)
        kind = self.values.kind(self.values.root)
        self.ttype = tile.ttype if is_weak(kind) else kind
        self.element = element(self.ttype)
        self.order = blocking.spatial
        self.indices = indices
        self.rounds: list[tuple[PrimExpr, int | None]] = []
        self.ends = {
            id(run): (indices.get(run.start), indices.get(run.trips)) for dim in blocking.runs.values() for run in dim
        }

    # -- loops --------------------------------------------------------------------------------------------

    @contextmanager
    def _run(self, dim: str, run: Strip) -> Iterator[range]:
        """One run of a dimension: opens its loop and yields the constant offsets that the body covers."""
        start, trips = constant_value(run.start), constant_value(run.trips)
        multiple = gcd(*polynomial(run.start).values(), run.width)
        if trips == 1 and start is not None:
            with self.values.loop():
                yield range(start, start + run.width)
            return
        first, count = self.ends[id(run)]
        loop = nullcontext(int64(0)) if trips == 1 else I.serial(int64(0), count)
        with loop as step:
            self.rounds.append((step, run.usual if trips is None else trips))
            at = step if run.width == 1 else tirx.Mul(step, int64(run.width))
            with self.values.loop(dim, bind(at if start == 0 else tirx.Add(first, at)), multiple):
                yield range(run.width)
            self.rounds.pop()

    def _runs(self, dim: str) -> Iterator[Strip]:
        return (run for run in self.cut.runs[dim] if constant_value(run.trips) != 0)

    def spatial(self, depth: int, widths: dict[str, range]) -> None:
        """The loops over the spatial dimensions from `depth` inwards, then the body."""
        if depth == len(self.order):
            if self.tile.reduce:
                self._reduction(widths)
            else:
                self._body(widths)
            return
        dim = self.order[depth]
        for run in self._runs(dim):
            if constant_value(run.trips) != 1:
                self._hoist(frozenset(self.order[:depth]), widths)
            with self._run(dim, run) as offsets:
                self.spatial(depth + 1, {**widths, dim: offsets})

    def _hoist(self, fixed: frozenset[str], widths: Mapping[str, range]) -> None:
        self.values.hoist(self.values.root, fixed, widths)

    def _points(self, widths: Mapping[str, range]) -> list[Point]:
        """The points of the unrolled body, the vector dimension innermost."""
        result = []
        outer = [d for d in self.order if d != self.cut.vector]
        for offsets in product(*(widths[d] for d in outer)):
            at = dict(zip(outer, offsets, strict=True))
            if self.cut.vector is None or self.cut.horizontal:
                result.append(Point(at))
                continue
            positions = widths[self.cut.vector]
            for first, lanes in vector_pieces(len(positions), self.cut.lanes):
                result.append(Point({**at, self.cut.vector: positions.start + first}, lanes))
        return result

    # -- results ------------------------------------------------------------------------------------------

    def _target(self, point: Point) -> tuple[PrimExpr, int]:
        offset, _ = self.values.offset(self.place, Point(point.offsets))
        return offset, self._along()

    def _along(self) -> int | PrimExpr:
        """The stride of the target along the vector dimension."""
        return 1 if self.place.along == 0 else self.values.along(self.place)

    def _past(self, point: Point, lanes: int) -> bool:
        """Whether a vector of results goes past the caches."""
        whole = lanes == self.memories.streamed.get(self.tile.target.tensor) and self.place.along in (0, 1)
        return whole and self.values.divides(lanes, self.place, point)

    def _old(self, point: Point) -> PrimExpr:
        offset, stride = self._target(point)
        return self.memories.read(self.tile.target.tensor, offset, stride, point.lanes)

    def _finish(self, point: Point, value: PrimExpr, merged: bool = False) -> None:
        """Convert and store a result, combined with what the target holds unless that is done already."""
        own = element(self.tile.ttype)
        value = convert(value, self.element, own, point.lanes)
        if self.tile.combine != "none" and not merged:
            value = combiner(self.tile.combine, own, point.lanes)(self._old(point), value)
        offset, stride = self._target(point)
        past = self._past(point, point.lanes)
        self.memories.write(self.tile.target.tensor, offset, stride, value, point.lanes, past=past)

    def _body(self, widths: Mapping[str, range]) -> None:
        """A tile without a reduction."""
        value = self.values.root
        if isinstance(value, Access) and self.tile.combine == "none" and self._same_type(value):
            self._move(value, widths)
            return
        for point in self._points(widths):
            result = self.values.value(value, self.ttype, point)
            self._finish(point, result.across(point.lanes))

    def _same_type(self, source: Access) -> bool:
        return self.memories.ttypes[source.tensor] == self.tile.ttype

    def _move(self, source: Access, widths: Mapping[str, range]) -> None:
        """A copy: elements are not converted."""
        if self.cut.across and {len(widths[d]) for d in (self.cut.across, self.cut.vector or "")} == {self.cut.lanes}:
            self._square(source, widths)
            return
        varies = self.cut.vector in self.values.depends(source)
        for point in self._points(widths):
            lanes = point.lanes if varies else 1
            raw, _ = self.values.elements(source, point, lanes)
            raw = raw if lanes == point.lanes else splat(raw, point.lanes)
            offset, stride = self._target(point)
            past = self._past(point, point.lanes)
            self.memories.put(self.tile.target.tensor, offset, stride, raw, point.lanes, past=past)

    def _square(self, source: Access, widths: Mapping[str, range]) -> None:
        """A square block: loaded along one dimension, transposed in registers, stored along the other."""
        place = self.values.place(source)
        across, along, side = str(self.cut.across), str(self.cut.vector), self.cut.lanes
        fixed = {d: positions.start for d, positions in widths.items()}
        rows = []
        for step in range(side):
            offset, _ = self.values.offset(place, Point({**fixed, along: widths[along].start + step}))
            rows.append(bind(self.memories.get(source.tensor, offset, 1, side)))
        for step, column in enumerate(transposed(rows)):
            point = Point({**fixed, across: widths[across].start + step})
            offset, stride = self._target(point)
            self.memories.put(self.tile.target.tensor, offset, stride, column, side, past=self._past(point, side))

    # -- reductions ---------------------------------------------------------------------------------------

    def _reduction(self, widths: Mapping[str, range]) -> None:
        points = self._points(widths)
        if not self.cut.group:
            self._hoist(frozenset(self.order), widths)
        size = self.cut.group or len(points)
        for first in range(0, len(points), size):
            with self.values.loop():
                self._accumulate(points[first : first + size])

    def _accumulate(self, points: list[Point]) -> None:
        """The reduction at some points side by side."""
        direct = self._direct()
        table = self._direct_accumulators(points) if direct else self._accumulators(points)
        if not (direct and self.tile.combine != "none"):
            self._initialise(table)
        self._steps(0, {}, points, table)
        if direct:
            return
        for first, count in self._results(points):
            chosen = [[a for (n, _, _), a in table.items() if n == number] for number in range(first, first + count)]
            point = Point(points[first].offsets, count if self.cut.horizontal else points[first].lanes)
            self._finish(point, self._total(chosen, point.lanes))

    def _results(self, points: list[Point]) -> tuple[tuple[int, int], ...]:
        """(first point, count) of results that are stored together: those of a horizontal reduction that lie side
        by side."""
        if not self.cut.horizontal or self.place.form.rest is not None:
            return tuple((number, 1) for number in range(len(points)))
        places = [displacement(self.place.form, p.offsets) for p in points]
        if any(place.rows is not None for place in places):
            return tuple((number, 1) for number in range(len(points)))
        return neighbours([place.elements for place in places], self.cut.lanes)

    def _direct(self) -> bool:
        """Whether the target itself is a register tile that the reduction can run on."""
        memory = self.memories.table[self.tile.target.tensor]
        return (
            memory.kind == "local"
            and self.values.is_constant(self.place)
            and not self.cut.horizontal
            and self.cut.chains == 1
            and self.tile.combine in ("none", self.tile.reducer)
            and self.memories.ttypes[self.tile.target.tensor] == self.ttype
            and stored(self.ttype) == self.element
        )

    def _direct_accumulators(self, points: list[Point]) -> dict[tuple[int, int, int], Accumulator]:
        name = self.tile.target.tensor
        table = {}
        for number, point in enumerate(points):
            offset, _ = self.values.offset(self.place, Point(point.offsets))
            piece = self.memories.pieces[name, int(offset.value), point.lanes]
            table[number, point.lanes, 0] = Accumulator(piece, point.lanes)
        return table

    def _accumulators(self, points: list[Point]) -> dict[tuple[int, int, int], Accumulator]:
        """(point, lanes, chain) -> accumulator in a local buffer of its own."""
        keys = []
        for number, point in enumerate(points):
            widths = self._reduce_lanes() if self.cut.horizontal else [point.lanes]
            keys += [(number, lanes, chain) for lanes in widths for chain in range(self.cut.chains)]
        return {key: Accumulator(register(self._accumulated, key[1]), key[1]) for key in keys}

    @property
    def _accumulated(self) -> str:
        """Element type of accumulators: bool is reduced as bytes."""
        return "uint8" if self.element == "bool" else self.element

    def _reduce_lanes(self) -> list[int]:
        """The widths of vectors that cover the vector dimension of a horizontal reduction."""
        found: set[int] = set()
        for run in self._runs(self.cut.vector or ""):
            found |= {lanes for _, lanes in vector_pieces(run.width, self.cut.lanes)}
        return sorted(found, reverse=True)

    def _initialise(self, table: Mapping[tuple[int, int, int], Accumulator]) -> None:
        first = neutral(str(self.tile.reducer), self._accumulated)
        for accumulator in table.values():
            accumulator.set(constant(first, self._accumulated, accumulator.lanes))

    def _total(self, points: list[list[Accumulator]], lanes: int) -> PrimExpr:
        """The chains and pieces of each point combined; for a horizontal reduction lane n belongs to point n."""
        total: PrimExpr | None = None
        for width in sorted({part.lanes for part in points[0]}, reverse=True):
            vectors = [self._chains([part for part in parts if part.lanes == width], width) for parts in points]
            part = self._folded(vectors, width) if self.cut.horizontal else vectors[0]
            total = part if total is None else bind(self._combiner(lanes)(total, part))
        if self.element == "bool":
            return tirx.NE(total, constant(0, "uint8", lanes))
        return total

    def _folded(self, vectors: list[PrimExpr], lanes: int) -> PrimExpr:
        """All lanes of each vector combined."""
        if len(vectors) == 1 and lanes > 1 and self.tile.reducer == "sum" and not is_float(self._accumulated):
            return bind(sum_of_lanes(self._accumulated, vectors[0]))
        return fold_together(self._combiner, vectors, lanes)

    def _chains(self, chains: list[Accumulator], lanes: int) -> PrimExpr:
        """The accumulators of one point and width as one."""
        values = [bind(chain.get()) for chain in chains]
        while len(values) > 1:
            pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
            values = [bind(self._combiner(lanes)(*pair)) if len(pair) == 2 else pair[0] for pair in pairs]
        return values[0]

    def _combiner(self, lanes: int) -> Callable[[PrimExpr, PrimExpr], PrimExpr]:
        return combiner(str(self.tile.reducer), self._accumulated, lanes)

    def _steps(
        self,
        depth: int,
        widths: dict[str, range],
        points: list[Point],
        table: Mapping[tuple[int, int, int], Accumulator],
    ) -> None:
        """The reduce loops from `depth` inwards, then the unrolled steps."""
        if depth < len(self.cut.reduce):
            dim = self.cut.reduce[depth]
            for run in self._runs(dim):
                if depth and constant_value(run.trips) != 1:
                    self._hoist_steps(depth, widths, points)
                with self._run(dim, run) as offsets:
                    self._steps(depth + 1, {**widths, dim: offsets}, points, table)
            return
        outer = [d for d in self.cut.reduce if d != self.cut.vector]
        steps = [
            ({**dict(zip(outer, places, strict=True)), **along}, lanes)
            for places in product(*(widths[d] for d in outer))
            for along, lanes in self._along_vector(widths)
        ]
        for number, (at, lanes) in enumerate(steps):
            self._step(at, lanes, number, points, table, len(steps))
        if all(count is not None for _, count in self.rounds):
            rounds = [(each, count) for each, count in self.rounds if count is not None]
            for ahead in self.tile.ahead:
                fetch(ahead, rounds, self.memories, self.indices, self.costs)

    def _along_vector(self, widths: Mapping[str, range]) -> list[tuple[dict[str, int], int | None]]:
        """Offsets along a reduced vector iterator, each with its lanes; without one there is a single step."""
        if not self.cut.horizontal or self.cut.vector is None:
            return [({}, None)]
        positions = widths[self.cut.vector]
        return [
            ({self.cut.vector: positions.start + first}, lanes)
            for first, lanes in vector_pieces(len(positions), self.cut.lanes)
        ]

    def _hoist_steps(self, depth: int, widths: Mapping[str, range], points: list[Point]) -> None:
        spatial: dict[str, range] = {}
        for name in self.order:
            if name != self.cut.vector:
                found = sorted({p.offsets[name] for p in points})
                spatial[name] = range(found[0], found[-1] + 1)
        fixed = frozenset(spatial) | frozenset(self.cut.reduce[:depth])
        self.values.hoist(self.values.root, fixed, {**spatial, **widths})

    def _step(
        self,
        at: Mapping[str, int],
        lanes: int | None,
        number: int,
        points: list[Point],
        table: Mapping[tuple[int, int, int], Accumulator],
        unrolled: int,
    ) -> None:
        """One step of the reduction at all points, one of so many in a row that are `unrolled`.

        Products are added by multiply-adds, so that LLVM has no choice of which product it rounds: tasks that overlap
        compute the same bits, whichever comes last (measured: where one had a guard, 14 of 100 results of an image
        restoration differed).
        """
        kind, factors = self._accumulated, self._factors()
        for index, point in enumerate(points):
            width = point.lanes if lanes is None else lanes
            where = Point({**point.offsets, **at}, width)
            accumulator = table[index, width, number % self.cut.chains]
            if factors:
                a, b = (self.values.value(factor, self.ttype, where).across(width) for factor in factors)
                accumulator.set(self._multiplied(kind, width, a, b, accumulator.get()))
                continue
            value = self.values.value(self.values.root, self.ttype, where).across(width)
            value = convert(value, self.element, kind, width)
            grow = grown if unrolled <= NESTED * self.cut.chains else combined
            accumulator.set(grow(str(self.tile.reducer), kind, width, accumulator.get(), value))

    def _multiplied(self, kind: str, lanes: int, a: PrimExpr, b: PrimExpr, total: PrimExpr) -> PrimExpr:
        """A sum with one more product, or with those of two words."""
        root = self.values.root
        if isinstance(root, Call):
            return dot(root.fn, self.tile.unit, lanes, total, a, b)
        return multiply_add(kind, lanes, a, b, total)

    def _factors(self) -> tuple[Expr, ...]:
        """The two factors of what a sum of floats adds up, if it is a product; the words of products of elements."""
        root = self.values.root
        if self.tile.reducer == "sum" and isinstance(root, Call) and root.fn in DOTS:
            return root.args
        if self.tile.reducer == "sum" and is_float(self.element) and isinstance(root, Binary) and root.op == "*":
            return root.left, root.right
        return ()
