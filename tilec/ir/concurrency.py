"""Concurrent iterations: how many iterations of spread loops a unit executes together, each with buffers of its own.

Iterations of a spread loop run on its units in turns where there are more of them than units. If they act together on a
lower level, or meet at a barrier, none can end before the others have come that far: the footprint of a unit (Welder,
3.1) counts the buffers of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate, Barrier, ComputeTile, Fill, LoadTiles, Loop, Statement, StoreTiles
from tilec.ir.scopes import scope_ranks


def iterations_per_unit(body: Iterable[Statement], levels: Sequence[PlanLevel]) -> dict[str, Expr]:
    """Buffer -> number of iterations for which a unit holds an instance at once; buffers with one instance are left
    out."""
    turns = _Turns(levels)
    turns.visit(tuple(body), {})
    return turns.counts


def waits_for_all(loop: Loop, homes: Mapping[str, int], levels: Sequence[PlanLevel]) -> bool:
    """Whether the iterations of a spread loop act together on a lower level or meet at a barrier. `homes` maps buffers
    around the loop to the positions of their levels."""
    turns = _Turns(levels)
    turns.homes.update(homes)
    return turns.lowest(loop.body) < turns.scopes[loop.scope]


class _Turns:
    def __init__(self, levels: Sequence[PlanLevel]) -> None:
        self.levels = levels
        self.rank = {level.name: position for position, level in enumerate(levels)}
        self.scopes = scope_ranks(levels)
        self.homes: dict[str, int] = {}
        self.counts: dict[str, Expr] = {}

    def visit(self, body: tuple[Statement, ...], waiting: Mapping[int, Expr]) -> None:
        """Count instances of the buffers in `body`. `waiting` maps the position of a level to the number of iterations
        around on its units that wait for each other."""
        for statement in body:
            if isinstance(statement, Allocate):
                buffer = statement.buffer
                home = self.homes[buffer.name] = self.rank.get(buffer.level, 0)
                self._count(buffer.name, home, waiting)
            elif isinstance(statement, Loop):
                inner = dict(waiting)
                if statement.kind == "spread":
                    rank = self.scopes.get(statement.scope, 0)
                    if self.lowest(statement.body) < rank:
                        inner[rank] = simplify(Binary("*", inner.get(rank, Const(1)), statement.extent))
                self.visit(statement.body, inner)

    def _count(self, name: str, home: int, waiting: Mapping[int, Expr]) -> None:
        for rank, iterations in waiting.items():
            units = self.levels[rank].units
            each = simplify(Binary("//", Binary("+", iterations, Const(units - 1)), Const(units)))
            if rank <= home and each not in (Const(0), Const(1)):
                self.counts[name] = simplify(Binary("*", self.counts.get(name, Const(1)), each))

    def lowest(self, body: Iterable[Statement]) -> float:
        """Position of the lowest level that statements act on; parameters are at 0, a barrier acts between the level of
        its units and the one below (position - 0.5)."""
        lowest = float(len(self.levels))
        for statement in body:
            match statement:
                case Allocate(buffer):
                    self.homes[buffer.name] = self.rank.get(buffer.level, 0)
                case Loop():
                    lowest = min(lowest, self.lowest(statement.body))
                case Barrier(scope):
                    lowest = min(lowest, self.scopes.get(scope, 0) - 0.5)
                case LoadTiles(name) | Fill(name) | StoreTiles(_, name):
                    lowest = min(lowest, self.homes.get(name, 0))
                case ComputeTile():
                    lowest = min(lowest, self.homes.get(statement.target, 0))
        return lowest
