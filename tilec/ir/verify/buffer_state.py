"""What a buffer holds at one point of a program, as far as a verifier knows: written boxes and partial sums.

A loop body is looked at once, for all its iterations: it may rely on what was there before the loop only, and what
it adds is united over the iterations when the loop ends.
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
    """Elements `where` hold the sum (maximum, ...) over the reduce points `over`, both presence first.

    A `fresh` sum was begun in this frame, any other was added to what the frame found.
    """

    where: Region
    over: Region
    fresh: bool

    @property
    def points(self) -> Region:
        """Elements times reduce points."""
        return self.where + self.over[1:]

    def complete(self, domain: Region) -> Region:
        """The elements whose sum covers all of `domain`."""
        whole = inside(domain[1:], self.over[1:])
        return ((self.where[0][0], ints(np.asarray(self.where[0][1] * whole))), *self.where[1:])


@dataclass(slots=True)
class BufferState:
    """Contents of one buffer within one frame (the body that allocates it, or a loop inside).

    `written` elements hold values, `filled` ones a constant: enough around a tensor and to accumulate into, `sums`
    what was accumulated.  `before` is the frame around; a frame that was `wiped` (filled) keeps nothing from before,
    one that was `restarted` no sums.  `stores` collects (statement, region) of what is written to an output.
    `unknown` says that boxes became too many to follow: nothing is claimed then.  `origin` names the buffer that was
    loaded, `constant` is what elements that were not computed hold.
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
        """The contents at the start of an iteration."""
        return BufferState(before=self, origin=self.origin, constant=self.constant, unknown=self.unknown)

    def values(self) -> list[Region]:
        """Every box that holds values, those from before included."""
        return [*self.written, *(self.before.values() if self.before and not self.wiped else [])]

    def constants(self) -> list[Region]:
        """Every box that was filled, those from before included."""
        return [*self.filled, *(self.before.constants() if self.before and not self.wiped else [])]

    def holds(self, region: Region) -> bool:
        """Whether all elements of a region hold values."""
        return self.unknown or covered(region, self.values())

    def initialised(self, region: Region) -> bool:
        """Whether all elements of a region hold anything."""
        return self.unknown or covered(region, [*self.values(), *self.constants()])

    def write(self, boxes: list[Region]) -> None:
        """Elements are set to values."""
        self.written = merged([*self.written, *boxes])

    def fill(self, window: Region, value: Scalar) -> None:
        """Every element is set to a constant."""
        self.restart()
        self.wiped, self.written, self.filled, self.constant = True, [], [window], value

    def restart(self, origin: str | None = None) -> None:
        """Every element is overwritten, by a copy of `origin` if one is named: no sum from before is left."""
        self.sums = []
        self.restarted = True
        self.origin, self.constant = origin, None

    def all_sums(self) -> list[PartialSum]:
        """Every sum that is still there, those from before included."""
        older = self.before.all_sums() if self.before and not self.restarted else []
        return [*self.sums, *older]

    def replace(self, new: PartialSum) -> None:
        """Elements hold a sum that was computed elsewhere or at once."""
        self.sums = [s for s in self.sums if not inside(s.where, new.where).all()]
        self.sums.append(new)

    def add(self, new: PartialSum) -> bool:
        """Elements are summed further; False when some reduce points were added before."""
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
        """Unite what the iterations of a loop at `depth` did; says what they did twice.

        `shared` says that the loop's units share the buffer: their sums are united already.
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
        """Take over a sum from a loop; False when its iterations, or it and an earlier one, share reduce points."""
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
