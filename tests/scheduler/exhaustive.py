"""An exhaustive search for the best groups and tiles of a handful of operators, which shares nothing with the real one
but the predicted time of a group with given tiles.

Every edge is connected at every level, every tile of the final node at a core's level is tried with every reduce step:
divisors, powers of two and the whole extent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import inf, prod

import numpy as np
from scheduler.tiling_problems import tiling_problem

from tilec.ir.expr import Access, TensorExpr, Var, accesses
from tilec.ir.graph import Graph, Node
from tilec.ir.intervals import Candidates
from tilec.scheduler.graph_passes.rewrite import constant_tensors
from tilec.scheduler.target_model import TargetModel
from tilec.scheduler.tiling.cost_model import estimate
from tilec.scheduler.tiling.register_tiles import register_tile
from tilec.scheduler.tiling.tile_footprints import leaves
from tilec.scheduler.tiling.tiling_problem import TilingProblem

NUMBERS = Candidates()
MOST = 200_000
"""Combinations of steps and tiles that are scored in one go."""

REGISTERS = (40, 20, 12, 8, 5)

Part = tuple[Node, ...]


@dataclass
class Exhaustive:
    """The best predicted time of a graph's nodes on a device."""

    graph: Graph
    target: TargetModel
    outputs: frozenset[str]
    known: dict[tuple[str, ...], float] = field(default_factory=dict)

    def best(self, nodes: Sequence[Node]) -> float:
        """The least sum over all partitions of the nodes into groups."""
        return min(
            (sum(self.group(group) for group in groups) for groups in partitions(nodes) if acyclic(groups)),
            default=inf,
        )

    def group(self, nodes: Part) -> float:
        """The least time of one group: over its parts, register tiles, tiles and steps."""
        key = tuple(node.name for node in nodes)
        if key not in self.known:
            self.known[key] = self._group(nodes) if leads_to_last(nodes) else inf
        return self.known[key]

    def _group(self, nodes: Part) -> float:
        names = {node.name for node in nodes}
        leaving = tuple(
            node.name
            for node in nodes
            if node.name in self.outputs
            or any(node.name in read(other) for other in self.graph.nodes if other.name not in names)
        )
        found = inf
        for parts in partitions(nodes):
            if acyclic(parts) and all(in_registers(part) for part in parts) and parts[-1][-1] is nodes[-1]:
                for tiles in self._registers(parts):
                    halos = frozenset(a.tensor for n in nodes for a in accesses(n.expr) if self._leaves(a, n.expr))
                    problem = tiling_problem(
                        parts, tiles, self.graph, self.target, NUMBERS, leaving, "time", halos=halos
                    )
                    found = min(found, best_tile(problem))
        return found

    def _leaves(self, access: Access, expr: TensorExpr) -> bool:
        return bool(expr.reduce) and leaves(access, expr, self.graph.tensors[access.tensor].shape, NUMBERS)

    def _registers(self, parts: Sequence[Part]) -> Iterator[list[object]]:
        """Register tiles as the model of a core likes them, with all registers and with fewer."""
        constants = constant_tensors(self.graph)
        targets = [self.target]
        if self.target.threads > 1:
            targets += [_with_registers(self.target, n) for n in REGISTERS if n < self.target.registers]
        seen = set()
        for target in targets:
            tiles = [register_tile(part, self.graph, constants, target, NUMBERS) for part in parts]
            key = tuple(tuple(tile.sizes.items()) for tile in tiles)
            if key not in seen:
                seen.add(key)
                yield list(tiles)


def _with_registers(target: TargetModel, registers: int) -> TargetModel:

    return replace(target, registers=registers)


def best_tile(problem: TilingProblem) -> float:
    """The least time over every tile of the final node and every reduce step of every node, of those that fit."""
    final = problem.group.final
    axes = [sizes(problem.extent(i)) for i in final.spatial]
    steps = {
        (node.name, i): sizes(int(NUMBERS.size(node.expr.domain[i])))
        for node in problem.group.nodes
        for i in node.expr.reduce
        if node.name in {part[0].name for part in problem.group.parts}
    }
    grid = [g.ravel() for g in np.meshgrid(*(np.asarray(a, np.int64) for a in axes), indexing="ij")] if axes else []
    tiles = dict(zip(final.spatial, grid, strict=True))
    count = prod(len(a) for a in axes)
    found = inf
    for chosen in steps_of(steps, max(1, MOST // count)):
        table: dict[str, dict[str, np.ndarray]] = {}
        for (node, i), n in chosen.items():
            table.setdefault(node, {})[i] = np.asarray(n, np.int64)
        result = estimate(problem, tiles, table)
        fits = result.held <= problem.target.capacity
        found = min(found, float(np.min(np.where(fits, result.objective, inf))))
    return found


def steps_of(steps: Mapping[tuple[str, str], Sequence[int]], most: int) -> Iterator[dict[tuple[str, str], int]]:
    """Every combination of reduce steps; those as long as their extent are none.

    Where there are too many, those of one node at a time.
    """
    whole = {key: max(choices) for key, choices in steps.items()}
    nodes = sorted({node for node, _ in steps})
    together = [nodes] if prod(len(c) for c in steps.values()) <= most else [[node] for node in nodes]
    seen = set()
    for free in together:
        keys = [key for key in steps if key[0] in free]
        for values in product(*(steps[key] for key in keys)):
            cut = {key: n for key, n in zip(keys, values, strict=True) if n < whole[key]}
            if tuple(sorted(cut.items())) not in seen:
                seen.add(tuple(sorted(cut.items())))
                yield cut
    if not seen:
        yield {}


def sizes(extent: int) -> list[int]:
    """Divisors, powers of two and the extent."""
    return sorted({n for n in range(1, extent + 1) if extent % n == 0 or n & (n - 1) == 0} | {max(1, extent)})


def partitions(nodes: Sequence[Node]) -> Iterator[tuple[Part, ...]]:
    """Every way to put nodes into groups, nodes and groups in the order of their last members."""
    if not nodes:
        yield ()
        return
    *rest, last = nodes
    for n in range(len(rest) + 1):
        for with_last in combinations(rest, n):
            others = [node for node in rest if all(node is not other for other in with_last)]
            for groups in partitions(others):
                yield (*groups, (*with_last, last))


def acyclic(groups: Sequence[Part]) -> bool:
    """Whether groups can run one after another, in whatever order."""
    made = {node.name: number for number, group in enumerate(groups) for node in group}
    needs = [{made[t] for node in group for t in read(node) if t in made} - {n} for n, group in enumerate(groups)]
    done: set[int] = set()
    while len(done) < len(groups):
        ready = {n for n in range(len(groups)) if n not in done and needs[n] <= done}
        if not ready:
            return False
        done |= ready
    return True


def read(node: Node) -> set[str]:
    return {access.tensor for access in accesses(node.expr)}


def leads_to_last(nodes: Sequence[Node]) -> bool:
    needed = {nodes[-1].name}
    for node in reversed(nodes):
        if node.name not in needed:
            return False
        needed |= read(node)
    return True


def in_registers(part: Part) -> bool:
    """Whether a part is a node and what is computed point by point on its result."""
    inside = {part[0].name}
    for node in part[1:]:
        own = [a for a in accesses(node.expr) if a.tensor in inside]
        points = [a.index == tuple(Var(i) for i in node.expr.spatial) for a in own]
        if node.expr.reduce or not own or not all(points) or node.expr.shape != part[0].expr.shape:
            return False
        inside.add(node.name)
    return leads_to_last(part)
