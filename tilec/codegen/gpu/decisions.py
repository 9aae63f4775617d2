"""What a plan says of the code of a kernel: threads, blocks that share a core, loads that nobody waits for, unrolling,
approximate functions. It is read off a kernel that the rules of the passes made, and obeyed by those of another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tilec.codegen.gpu.kernel_ir import Copy, For, KernelIR, Tile, steps, tiles
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, constant_value, variables
from tilec.ir.plan import Variant

OWN = frozenset({"threads", "resident", "asynchronous", "unroll", "fast"})
"""The fields of a variant that say what the code of a GPU is."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """What passes obey. `asynchronous` are tensors whose loads into shared memory arrive later; `unroll` has (node,
    iterator, points) for those of which one body of the innermost loops covers several."""

    threads: int
    resident: int
    asynchronous: frozenset[str]
    unroll: frozenset[tuple[str, str, int]]
    fast: frozenset[str]

    def points(self, node: str) -> dict[str, int]:
        """Iterator -> points of a node."""
        return {iterator: points for name, iterator, points in self.unroll if name == node}

    @classmethod
    def of(cls, variant: Variant) -> Decisions | None:
        """What a variant says; None for one without threads, which leaves all to the rules."""
        level = variant.levels[1] if len(variant.levels) > 1 else ""
        if level not in variant.threads:
            return None
        unroll = {(node, i, n) for node, points in variant.unroll.items() for i, n in points.items() if n > 1}
        late = frozenset(variant.asynchronous.get(level, ()))
        resident, fast = variant.resident.get(level, 1), frozenset(variant.fast)
        return cls(variant.threads[level], resident, late, frozenset(unroll), fast)

    @classmethod
    def in_kernel(cls, kernel: KernelIR) -> Decisions:
        """What the passes chose for a kernel."""
        late = (step.upper.tensor for step in steps(kernel.body) if isinstance(step, Copy) and step.arrival == "later")
        found: dict[tuple[str, str], int] = {}
        for node, iterator, points in (*_in_tiles(tiles(kernel.body)), *_in_loops(kernel)):
            found[node, iterator] = max(points, found.get((node, iterator), 1))
        unroll = frozenset((node, i, points) for (node, i), points in found.items() if points > 1)
        launch = kernel.launched
        return cls(launch.threads, launch.resident, frozenset(late), unroll, kernel.fast)

    def written(self, variant: Variant) -> Variant:
        """A variant that says this."""
        level = variant.levels[1]
        unroll: dict[str, dict[str, int]] = {}
        for node, iterator, points in sorted(self.unroll):
            unroll.setdefault(node, {})[iterator] = points
        return replace(
            variant,
            threads={level: self.threads},
            resident={level: self.resident},
            asynchronous={level: tuple(sorted(self.asynchronous))} if self.asynchronous else {},
            unroll=unroll,
            fast=tuple(sorted(self.fast)),
        )


def _in_tiles(body: Iterable[Tile]) -> Iterator[tuple[str, str, int]]:
    """Points along every iterator that lanes compute together, or that unrolled steps of a product cover."""
    for tile in body:
        node, matrix = tile.expr.tensor, tile.matrix
        if matrix is not None:
            yield node, matrix.product.depth, (matrix.unroll or 0) * matrix.unit.depth
            continue
        together = {**tile.together} | dict(axis.inner for axis in tile.axes if axis.name in tile.expr.reduce)
        for axis in tile.axes:
            yield node, axis.name, together.get(axis.outer[0], 1) * together.get(axis.inner[0], 1)


def _in_loops(kernel: KernelIR) -> Iterator[tuple[str, str, int]]:
    """Points along reduce iterators that unrolled loops around tiles cover."""
    for loop in steps(kernel.body):
        if isinstance(loop, For) and loop.unroll:
            yield from ((node, i, loop.unroll * points) for node, i, points in reduced_in(loop))


def reduced_in(loop: For) -> Iterator[tuple[str, str, int]]:
    """The nodes of which a loop around tiles moves a reduction, the iterator, and its points in one turn."""
    for tile in tiles(loop.body):
        for iterator, lo, hi in tile.box:
            points = constant_value(simplify(Binary("-", hi, lo)))
            if iterator in tile.expr.reduce and loop.variable in variables(lo) and points is not None:
                yield tile.expr.tensor, iterator, points
