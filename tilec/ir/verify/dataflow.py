"""Data-flow verifier of tile programs: at every loop position, reads are initialised, sums complete, stores unique.

All positions of the loops around a statement are evaluated together (`tilec.ir.regions`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from tilec.ir.evaluate import Points, integer, neutral
from tilec.ir.expr import NEUTRAL, Const, Expr, TensorExpr, variables
from tilec.ir.guarded_reads import GuardedReads
from tilec.ir.intervals import Candidates
from tilec.ir.lifetimes import carried, is_asynchronous, statements
from tilec.ir.program import (
    Allocate,
    Buffer,
    ComputeTile,
    Fill,
    LoadTiles,
    Loop,
    Program,
    Statement,
    StoreTiles,
    Wait,
)
from tilec.ir.program_text import statement_text
from tilec.ir.propagate import read_window
from tilec.ir.reads import reads
from tilec.ir.regions import (
    PRESENT,
    Bools,
    Ints,
    Region,
    arrays_of,
    at_position,
    covered,
    disjoint,
    empty,
    inside,
    intersection,
    ints,
    overlaps,
    sampled,
    united,
    varies,
)
from tilec.ir.scopes import scope_ranks
from tilec.ir.types import numpy_dtype
from tilec.ir.verify.buffer_state import BufferState, PartialSum

EXACT_POSITIONS = 64
"""Maximal number of loop positions at which a guarded read is followed point by point."""


MAX_POSITIONS = 1 << 22
"""Maximal number of iterations of a loop that are followed, and of positions of several loops at which one number is
computed; a program with more is checked up to there."""


class _TooLongError(Exception):
    """Loops have more iterations than can be followed."""


@dataclass(slots=True)
class _Loops:
    """The loops around a statement: their variables, scopes, trip counts, and the positions at which they are
    active."""

    env: dict[str, Any]
    loops: tuple[tuple[Loop, int], ...] = ()
    active: Bools = field(default_factory=lambda: np.asarray(True))

    @property
    def depth(self) -> int:
        """Number of loops."""
        return len(self.loops)


@dataclass(slots=True)
class Dataflow:
    """Data-flow analysis of one program with a valid structure and every symbol bound; `problems` collects errors."""

    program: Program
    symbols: Mapping[str, int]
    problems: list[str] = field(default_factory=list)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    windows: dict[str, Region] = field(default_factory=dict)
    contents: dict[str, BufferState] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    domains: dict[str, Region] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    scopes: dict[str, int] = field(default_factory=dict)
    carried: frozenset[str] = frozenset()
    coming: dict[str, LoadTiles] = field(default_factory=dict)

    def check(self) -> list[str]:
        """All problems, in the order of the program."""
        program = self.program
        tiles = [s.expr for s in statements(program.body) if isinstance(s, ComputeTile)]
        self.ranks = {level.name: rank for rank, level in enumerate(program.levels)}
        self.scopes = scope_ranks(program.levels)
        self.carried = carried(program.body)
        for expr in (e for e in tiles if e.reduce):
            sizes = [integer(n, self.symbols) for n in expr.extents[len(expr.spatial) :]]
            if all(np.all(n > 0) for n in sizes):  # a sum of nothing is complete as soon as it is written
                self.domains.setdefault(expr.tensor, (PRESENT, *((ints(0), ints(n)) for n in sizes)))
        exprs = {e.tensor: e.shape for e in tiles} | {p.tensor: p.shape for p in program.parameters}
        self.shapes = {t: tuple(int(integer(n, self.symbols)) for n in shape) for t, shape in exprs.items()}
        loops = _Loops(dict(self.symbols))
        for parameter in program.parameters:
            self._allocate(parameter, loops)
            if parameter.name not in program.outputs:
                self.contents[parameter.name].write([self.windows[parameter.name]])
        try:
            self._body(program.body, loops)
        except _TooLongError:
            return list(dict.fromkeys(self.problems))
        for name in program.outputs:
            self._stored(name)
        return list(dict.fromkeys(self.problems))

    def _say(self, statement: Statement, problem: str) -> None:
        self.problems.append(f"{statement_text(statement)}: {problem}")

    def _stored(self, name: str) -> None:
        contents, whole = self.contents[name], self.windows[name]
        if not contents.holds(whole):
            self.problems.append(f"output {name}: not every element is stored")
        elif not self._summed_up(name, whole):
            self.problems.append(f"output {name}: not every element is summed up")
        for i, (place, region) in enumerate(contents.stores):
            for other, earlier in contents.stores[:i]:
                if not disjoint(region, earlier):
                    self.problems.append(f"{place}: stores elements that {other} stores too")

    # regions

    def _ends(self, expr: Expr, loops: _Loops) -> Ints:
        used = variables(expr)
        if prod(trips for loop, trips in loops.loops if loop.variable in used) > MAX_POSITIONS:
            raise _TooLongError
        return ints(integer(expr, loops.env))

    def _region(self, lo: Sequence[Expr], hi: Sequence[Expr], loops: _Loops) -> Region:
        present = (PRESENT[0], ints(loops.active))
        ends = ((self._ends(a, loops), self._ends(b, loops)) for a, b in zip(lo, hi, strict=True))
        return (present, *ends)

    def _whole(self, tensor: str) -> Region:
        return (PRESENT, *((ints(0), ints(n)) for n in self.shapes[tensor]))

    def _here(self, region: Region, loops: _Loops) -> Region:
        """A region of a buffer of an outer frame, present where the loops are active."""
        return ((region[0][0], ints(np.asarray(region[0][1] * loops.active))), *region[1:])

    # statements

    def _body(self, body: tuple[Statement, ...], loops: _Loops) -> None:
        for statement in body:
            match statement:
                case Allocate(buffer):
                    self._allocate(buffer, loops)
                    self._reserved(statement, buffer)
                case Fill(name, value):
                    self.contents[name].fill(self._here(self.windows[name], loops), value)
                    if name in self.carried:
                        self.contents[name].write([self._here(self.windows[name], loops)])
                case LoadTiles(name):
                    if is_asynchronous(statement):
                        self.coming[name] = statement
                        self.contents[name] = BufferState()
                    else:
                        self._load(statement, loops)
                case Wait(names):
                    for name in names:
                        self._load(self.coming.pop(name), loops)
                case ComputeTile():
                    self._compute(statement, loops)
                case StoreTiles():
                    self._store(statement, loops)
                case Loop():
                    self._loop(statement, loops)

    def _allocate(self, buffer: Buffer, loops: _Loops) -> None:
        self.buffers[buffer.name] = buffer
        self.windows[buffer.name] = self._region(buffer.lo, buffer.hi, loops)
        self.contents[buffer.name] = BufferState()

    def _reserved(self, statement: Statement, buffer: Buffer) -> None:
        for (lo, hi), extent in zip(self.windows[buffer.name][1:], buffer.shape, strict=True):
            if np.any(hi - lo > int(integer(extent, self.symbols))):
                self._say(statement, "the window is wider than what is reserved")
                return

    def _loop(self, loop: Loop, loops: _Loops) -> None:
        extent = self._ends(loop.extent, loops)
        trips = int(extent.max(initial=0))
        if trips <= 0:
            return
        if trips > MAX_POSITIONS:
            raise _TooLongError
        depth = loops.depth
        index = np.arange(trips).reshape([trips] + [1] * depth)
        active = np.asarray(loops.active & (index < extent)) if np.any(extent != trips) else loops.active
        inner = _Loops({**loops.env, loop.variable: index}, (*loops.loops, (loop, trips)), active)
        around = dict(self.contents)
        self.contents = {name: contents.enter() for name, contents in around.items()}
        self._body(loop.body, inner)
        for name, contents in around.items():
            shared = depth in self._foreign(name, inner)
            for problem in contents.leave(self.contents[name], depth, trips, shared):
                self.problems.append(f"for {loop.variable}: {name}: {problem}")
        self.contents = around

    def _load(self, statement: LoadTiles, loops: _Loops) -> None:
        target, source = statement.target, statement.source
        window = self._here(self.windows[target], loops)
        tensor = self._whole(self.buffers[target].tensor)
        region = intersection(intersection(window, self.windows[source]), tensor)
        if statement.fill is None and not inside(window, tensor).all():
            self._say(statement, "the window leaves the tensor and nothing is filled in")
        from_, to = self.contents[source], self.contents[target]
        to.restart(source)
        to.unknown = to.unknown or from_.unknown
        to.write([region] if from_.holds(region) else [intersection(region, box) for box in from_.values()])
        if from_.initialised(region):
            surrounded = statement.fill is not None and inside(intersection(window, tensor), region).all()
            to.filled.append(window if surrounded else region)

    def _store(self, statement: StoreTiles, loops: _Loops) -> None:
        target, source = statement.target, statement.source
        from_, to = self.contents[source], self.contents[target]
        whole, window = self._whole(self.buffers[source].tensor), self._here(self.windows[source], loops)
        owned = intersection(self._region(statement.lo, statement.hi, loops) if statement.lo else window, whole)
        if not inside(owned, window).all():
            self._say(statement, "stores more than the window")
        if not inside(owned, self.windows[target]).all():
            self._say(statement, f"leaves the window of {target}")
        region = intersection(intersection(owned, window), self.windows[target])
        if not from_.holds(region):
            self._say(statement, f"stores elements of {source} that were never written")
        combines, relays = statement.combine != "none", from_.origin == target
        if combines or relays:
            if not to.initialised(region):
                self._say(statement, f"combines with elements of {target} that were never written")
            for s in from_.sums:
                part = PartialSum(intersection(s.where, region), s.over, False)
                self._accumulate(statement, target, part, loops, atomic=combines)
        else:
            if target in self.program.outputs:
                if not self._summed_up(source, region):
                    self._say(statement, f"{source} is stored before it is summed up")
                to.stores.append((statement_text(statement), region))
            for s in self._sums(source):
                self._replace(target, PartialSum(intersection(s.where, region), s.over, True), loops)
        to.unknown = to.unknown or from_.unknown
        to.write(self._shared(region, target, loops))

    def _compute(self, statement: ComputeTile, loops: _Loops) -> None:
        expr, name = statement.expr, statement.target
        present = (PRESENT[0], ints(loops.active))
        box = {i: (self._ends(lo, loops), self._ends(hi, loops)) for i, lo, hi in statement.box}
        points: Region = (present, *(box[i] for i in expr.iterators))
        region, over = points[: 1 + len(expr.spatial)], (present, *points[1 + len(expr.spatial) :])
        if not inside(points, (PRESENT, *((ints(0), self._ends(n, loops)) for n in expr.extents))).all():
            self._say(statement, "the box leaves the extents")
        if not inside(region, self.windows[name]).all():
            self._say(statement, f"leaves the window of {name}")
        for tensor, buffer in statement.operands:
            self._operand(statement, tensor, buffer, points, loops)
        contents = self.contents[name]
        if statement.accumulate:
            if not contents.initialised(region):
                self._say(statement, f"accumulates into elements of {name} that were never written")
            self._accumulate(statement, name, PartialSum(region, over, False), loops)
            contents.write(self._shared(region, name, loops))
            return
        if name not in dict(statement.operands).values():
            if expr.tensor in self.domains:
                all_points = over if expr.reduce else self.domains[expr.tensor]
                self._replace(name, PartialSum(region, all_points, True), loops)
            if name in self.program.outputs:
                contents.stores.append((statement_text(statement), region))
        contents.constant = None
        contents.write(self._shared(region, name, loops))

    # reads

    def _operand(self, statement: ComputeTile, tensor: str, name: str, points: Region, loops: _Loops) -> None:
        expr, contents = statement.expr, self.contents[name]
        shape = tuple(Const(n) for n in self.shapes[tensor])
        values, constants, sums = contents.values(), contents.constants(), self._complete(name, loops.depth)
        window = intersection(self._here(self.windows[name], loops), self._whole(tensor))
        small, window, *boxes = sampled(points, window, *values, *constants, *(sums or ()))
        summed = boxes[len(values) + len(constants) :]
        boxes = boxes[: len(values) + len(constants)]
        box = {i: (lo, hi - 1) for i, (lo, hi) in zip(expr.iterators, small[1:], strict=True)}
        for read in reads(expr):
            if read.tensor != tensor or contents.unknown:
                continue
            ends, gone = read_window(read, box, shape, Candidates(self.symbols), clip=False)
            there = (small[0][0], ints(small[0][1] * ~(gone | empty(small))))
            hull: Region = (there, *((lo, hi + 1) for lo, hi in ends))
            inner = intersection(hull, self._whole(tensor))
            if not (covered(hull, boxes) and covered(inner, boxes[: len(values)])):
                if not self._exactly(expr, tensor, hull, small, boxes, len(values)):
                    self._say(statement, f"reads elements of {name} that were never written")
            elif name != statement.target and sums is not None and not covered(intersection(hull, window), summed):
                self._say(statement, f"reads {name} before it is summed up")

    def _exactly(
        self, expr: TensorExpr, tensor: str, hull: Region, points: Region, boxes: Sequence[Region], count: int
    ) -> bool:
        """Follow guards point by point, at some positions, where the hull of a read is not written; avoids false
        alarms.

        The first `count` boxes have values, the others constants.
        """
        open_: Bools = ~empty(hull)
        for box in boxes[:count]:
            open_ = np.asarray(open_ & ~inside(hull, box))
        shape = np.broadcast_shapes(open_.shape, *(end.shape for end in arrays_of(points, *boxes)))
        positions = np.argwhere(np.broadcast_to(open_, shape))
        chosen = np.unique(np.linspace(0, len(positions) - 1, min(len(positions), EXACT_POSITIONS)).astype(int))
        for position in positions[chosen]:
            ends = dict(zip(expr.iterators, at_position(points, position, shape)[1:], strict=True))
            here = [at_position(box, position, shape) for box in boxes]
            values, constants = ([b[1:] for b in part if b[0][1]] for part in (here[:count], here[count:]))
            reach = GuardedReads(tensor, values, constants, self.shapes[tensor], Points(ends, {}, self.symbols))
            if not reach.safe(expr.value).all():
                return False
        return True

    # sums

    def _sums(self, name: str) -> list[PartialSum]:
        """The sums in a buffer; if it has none of its own, those of the buffer that it is a copy of."""
        contents = self.contents[name]
        sums = contents.all_sums()
        return sums if sums or contents.origin is None else self._sums(contents.origin)

    def _summed_up(self, name: str, region: Region) -> bool:
        """Whether all elements of a region have complete sums."""
        complete = self._complete(name, 0)
        return complete is None or covered(region, complete)

    def _complete(self, name: str, depth: int) -> list[Region] | None:
        """The boxes in which a buffer has complete sums; None if no complete sum is required there.

        Partial sums of one of the `depth` loops around may be read, since online reductions rescale them, and so may
        the initial value of a sum that a loop carries.
        """
        domain = self.domains.get(self.buffers[name].tensor)
        if domain is None or self.contents[name].unknown or self._is_given(name):
            return None
        sums, root = self._sums(name), self._origin(name)
        if not sums and root in self.carried and self.contents[root].before is not None:
            return None
        if any(varies(s.over, d) for s in sums for d in range(depth)):
            return None
        return [s.complete(domain) for s in sums]

    def _origin(self, name: str) -> str:
        """The buffer at the start of a series of copies."""
        origin = self.contents[name].origin
        return name if origin is None else self._origin(origin)

    def _is_given(self, name: str) -> bool:
        """Whether a buffer is an input or a copy of one."""
        root = self._origin(name)
        return any(p.name == root for p in self.program.parameters) and root not in self.program.outputs

    def _replace(self, name: str, new: PartialSum, loops: _Loops) -> None:
        n = len(new.where)
        for box in self._shared(new.points, name, loops):
            self.contents[name].replace(PartialSum(box[:n], (box[0], *box[n:]), True))

    def _accumulate(
        self, statement: Statement, name: str, new: PartialSum, loops: _Loops, atomic: bool = False
    ) -> None:
        self._neutral(statement, name)
        n = len(new.where)
        pieces = [new.points]
        for depth in self._foreign(name, loops):
            trips = loops.loops[depth][1]
            if any(overlaps(piece if atomic else piece[:n], depth, trips) for piece in pieces):
                self._say(statement, "units accumulate into the same elements")
            pieces = self._swept(pieces, depth, name)
        for piece in pieces:
            if not self.contents[name].add(PartialSum(piece[:n], (piece[0], *piece[n:]), False)):
                self._say(statement, "the same elements are accumulated twice")

    def _neutral(self, statement: Statement, name: str) -> None:
        """Check that a sum begins with the neutral element."""
        constant, buffer = self.contents[name].constant, self.buffers[name]
        op: str | None = statement.combine if isinstance(statement, StoreTiles) else None
        op = statement.expr.reducer if isinstance(statement, ComputeTile) else op
        if constant is not None and op in NEUTRAL and constant != neutral(op, numpy_dtype(buffer.ttype)):
            self._say(statement, f"{name} begins with {constant}, which is not neutral in a {op}")

    # units

    def _shared(self, region: Region, name: str, loops: _Loops) -> list[Region]:
        """The region that the units sharing a buffer touch together, since they run in lockstep."""
        regions = [region]
        for depth in self._foreign(name, loops):
            regions = self._swept(regions, depth, name)
        return regions

    def _swept(self, regions: Sequence[Region], depth: int, name: str) -> list[Region]:
        swept = [united(region, depth) for region in regions]
        if any(boxes is None for boxes in swept):
            self.contents[name].unknown = True
        return [box for boxes in swept for box in boxes or []]

    def _foreign(self, name: str, loops: _Loops) -> Iterator[int]:
        """Depths of the loops whose units share a buffer."""
        rank = self.ranks[self.buffers[name].level]
        for depth, (loop, _) in enumerate(loops.loops):
            if loop.kind == "spread" and self.scopes[loop.scope] > rank:
                yield depth
