"""State of a buffer at one point of a program, as derived by the verifier: written boxes and partial sums.

A loop body is analysed once, for all its iterations: it may rely only on the state before the loop, and its own effects
are united over the iterations when the loop ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tilec.ir.expr import Scalar
from tilec.ir.regions import (
    Region,
    at_iteration,
    covered,
    disjoint,
    inside,
    ints,
    merged,
    overlaps,
    repeats,
    united,
    varies,
)


@dataclass(frozen=True, slots=True)
class PartialSum:
    """The elements `where` hold the sum (maximum, ...) over the reduce points `over`; both regions begin with presence.

    A `fresh` sum was begun in this frame; any other was added to contents from before the frame.
    """

    where: Region
    over: Region
    fresh: bool

    @property
    def points(self) -> Region:
        """Product of elements and reduce points."""
        return self.where + self.over[1:]

    def complete(self, domain: Region) -> Region:
        """The elements whose sum covers all of `domain`."""
        whole = inside(domain[1:], self.over[1:])
        return ((self.where[0][0], ints(np.asarray(self.where[0][1] * whole))), *self.where[1:])


@dataclass(slots=True)
class BufferState:
    """State of one buffer within one frame (the body that allocates it, or a loop inside).

    `written` elements have values, `filled` elements a constant, which suffices around a tensor and as the start of an
    accumulation; `sums` are partial results. `before` is the state of the enclosing frame; a frame that was `wiped`
    (filled) inherits nothing from it, one that was `restarted` no sums. `stores` collects (statement, region) of stores
    to an output. `unknown`: there were too many boxes to follow, hence no claim is made. `origin` names the buffer that
    was loaded, `constant` is the value of elements that were filled and not computed since.
    """

    written: list[Region] = field(default_factory=list)
    filled: list[Region] = field(default_factory=list)
    sums: list[PartialSum] = field(default_factory=list)
    stores: list[tuple[str, Region]] = field(default_factory=list)
    before: BufferState | None = None
    wiped: bool = False
    restarted: bool = False
    unknown: bool = False
    origin: str | None = None
    constant: Scalar | None = None

    def enter(self) -> BufferState:
        """The state at the start of an iteration."""
        return BufferState(before=self, origin=self.origin, constant=self.constant, unknown=self.unknown)

    def values(self) -> list[Region]:
        """Every box with values, those of enclosing frames included."""
        return [*self.written, *(self.before.values() if self.before and not self.wiped else [])]

    def constants(self) -> list[Region]:
        """Every box that was filled, those of enclosing frames included."""
        return [*self.filled, *(self.before.constants() if self.before and not self.wiped else [])]

    def holds(self, region: Region) -> bool:
        """Whether all elements of a region have values."""
        return self.unknown or covered(region, self.values())

    def initialised(self, region: Region) -> bool:
        """Whether all elements of a region have a value or a constant."""
        return self.unknown or covered(region, [*self.values(), *self.constants()])

    def write(self, boxes: list[Region]) -> None:
        """Record that boxes are set to values."""
        self.written = merged([*self.written, *boxes])

    def fill(self, window: Region, value: Scalar) -> None:
        """Record that every element is set to a constant."""
        self.restart()
        self.wiped, self.written, self.filled, self.constant = True, [], [window], value

    def restart(self, origin: str | None = None) -> None:
        """Record that every element is overwritten, by a copy of `origin` if given: no earlier sum remains."""
        self.sums = []
        self.restarted = True
        self.origin, self.constant = origin, None

    def all_sums(self) -> list[PartialSum]:
        """Every sum that is still valid, those of enclosing frames included."""
        older = self.before.all_sums() if self.before and not self.restarted else []
        return [*self.sums, *older]

    def replace(self, new: PartialSum) -> None:
        """Record elements that are set to a sum computed elsewhere or in one statement."""
        self.sums = [s for s in self.sums if not inside(s.where, new.where).all()]
        self.sums.append(new)

    def add(self, new: PartialSum) -> bool:
        """Record elements that are accumulated further; False when some reduce points were added before."""
        alike = [s for s in self.sums if len(s.points) == len(new.points)]
        others = [s for s in self.sums if len(s.points) != len(new.points)]
        clean = all(disjoint(s.points, new.points) for s in alike)
        n = len(new.where)
        fresh = new.fresh or any(s.fresh and inside(new.where, s.where).all() for s in alike)
        same = [s.points for s in alike if s.fresh == fresh]
        joined = [PartialSum(p[:n], (p[0], *p[n:]), fresh) for p in merged([*same, new.points])]
        self.sums = [*others, *(s for s in alike if s.fresh != fresh), *joined]
        return clean

    def leave(self, inner: BufferState, depth: int, trips: int, shared: bool) -> list[str]:
        """Unite the effects of the iterations of a loop at `depth`; returns stores and accumulations that are done
        twice.

        `shared`: the units of the loop share the buffer, so that their sums are united already.
        """
        problems = []
        self.unknown = self.unknown or inner.unknown
        if inner.wiped:
            self.wiped, self.written, self.filled = True, [], []
        for box in inner.filled:
            self.filled += self._united(box, depth)
        for box in inner.written:
            self.write([at_iteration(box, depth, -1)] if inner.wiped else self._united(box, depth))
        for place, region in inner.stores:
            if repeats(region, depth, trips):
                problems.append(f"{place}: later iterations store the same elements again")
            self.stores += [(place, box) for box in self._united(region, depth)]
        if inner.restarted:
            self.restart(inner.origin)
        self.constant = inner.constant
        clean = [self._take(s, depth, 1 if shared else trips, inner.restarted) for s in inner.sums]
        return problems if all(clean) else [*problems, "later iterations accumulate the same elements again"]

    def _united(self, region: Region, depth: int) -> list[Region]:
        boxes = united(region, depth)
        self.unknown = self.unknown or boxes is None
        return boxes or []

    def _take(self, s: PartialSum, depth: int, trips: int, restarted: bool) -> bool:
        """Record a sum of a loop's body; False when reduce points of its iterations, or of it and an earlier sum,
        overlap."""
        n = len(s.where)
        if restarted or (s.fresh and varies(s.over, depth) and not varies(s.where, depth)):
            last = at_iteration(s.points, depth, -1)
            self.replace(PartialSum(last[:n], (last[0], *last[n:]), True))
            return True
        clean = s.fresh or not overlaps(s.points, depth, trips)
        for piece in self._united(s.points, depth):
            new = PartialSum(piece[:n], (piece[0], *piece[n:]), s.fresh)
            if s.fresh:
                self.replace(new)
            else:
                clean = self.add(new) and clean
        return clean
