"""Steps of a kernel in other names: for arrays, of which offsets may count from another element, for variables, and for
the dimensions of tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tilec.codegen.cpu.kernel_ir import Blocking, CallFunction, Dim, For, If, Step, Tile
from tilec.codegen.cpu.strip_mining import Strip
from tilec.ir.expr import Access, Binary, Const, Expr, Var, rebuild


def constant_apart(offset: Expr) -> tuple[Expr, int]:
    """A sum without its constant, and that."""
    match offset:
        case Const(int() as value):
            return Const(0), value
        case Binary("+", left, Const(int() as value)):
            rest, more = constant_apart(left)
            return rest, more + value
        case Binary("-", left, Const(int() as value)):
            rest, more = constant_apart(left)
            return rest, more - value
        case Binary("+", left, right):
            rest, value = constant_apart(left)
            return (right if rest == Const(0) else Binary("+", rest, right)) if value else offset, value
        case Binary("-", left, right):
            rest, value = constant_apart(left)
            return (Binary("-", rest, right) if value else offset), value
    return offset, 0


def _less(offset: Expr, by: int) -> Expr:
    """An offset that counts from another element."""
    if not by:
        return offset
    rest, value = constant_apart(offset)
    if rest == Const(0):
        return Const(value - by)
    return Binary("+", rest, Const(value - by)) if value != by else rest


@dataclass(frozen=True, slots=True)
class Renaming:
    """Steps with other names for `arrays`, of which offsets count from another element, and for `variables`;
    `nameless` ones are of no node. Dimensions of `numbered` tiles are called by their places."""

    arrays: Mapping[str, tuple[str, int]]
    variables: Mapping[str, str]
    nameless: bool = False
    numbered: bool = False

    def steps(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """The steps in the new names."""
        return tuple(map(self._step, steps))

    def _step(self, step: Step) -> Step:
        match step:
            case For(variable, lo, hi, body):
                return For(self._variable(variable), self.expr(lo), self.expr(hi), self.steps(body))
            case If(condition, yes, no):
                return If(self.expr(condition), self.steps(yes), self.steps(no))
            case CallFunction(part, variables, arrays):
                return CallFunction(part, tuple(map(self._variable, variables)), tuple(map(self._argument, arrays)))
        dims = {dim.name: f"d{n:02}" for n, dim in enumerate(step.dims)} if self.numbered else {}
        return (replace(self, variables={**self.variables, **dims}) if dims else self)._tile(step)

    def _tile(self, tile: Tile) -> Tile:
        target = self.expr(tile.target)
        assert isinstance(target, Access)
        changed = replace(
            tile,
            spatial=tuple(map(self._dim, tile.spatial)),
            reduce=tuple(map(self._dim, tile.reduce)),
            value=self.expr(tile.value),
            target=target,
            ahead=tuple(
                replace(
                    each,
                    memory=self.arrays.get(each.memory, (each.memory, 0))[0],
                    first=_less(self.expr(each.first), self.arrays.get(each.memory, ("", 0))[1]),
                    loops=tuple((self._variable(name), first, rounds) for name, first, rounds in each.loops),
                )
                for each in tile.ahead
            ),
            node="" if self.nameless else tile.node,
        )
        if tile.blocking is None:
            return changed
        return replace(changed, blocking=self._blocking(tile.blocking))

    def _dim(self, dim: Dim) -> Dim:
        return Dim(self._variable(dim.name), self.expr(dim.extent))

    def _blocking(self, blocking: Blocking) -> Blocking:
        return replace(
            blocking,
            vector=None if blocking.vector is None else self._variable(blocking.vector),
            spatial=tuple(map(self._variable, blocking.spatial)),
            reduce=tuple(map(self._variable, blocking.reduce)),
            runs={self._variable(dim): tuple(map(self._strip, strips)) for dim, strips in blocking.runs.items()},
            across=None if blocking.across is None else self._variable(blocking.across),
        )

    def _strip(self, strip: Strip) -> Strip:
        return replace(strip, start=self.expr(strip.start), trips=self.expr(strip.trips))

    def _variable(self, name: str) -> str:
        return self.variables.get(name, name)

    def _argument(self, argument: tuple[str, int]) -> tuple[str, int]:
        name, start = self.arrays.get(argument[0], (argument[0], 0))
        return name, argument[1] - start

    def expr(self, expr: Expr) -> Expr:
        """An expression in the new names."""
        if isinstance(expr, Var):
            return Var(self._variable(expr.name))
        new = rebuild(expr, self.expr)
        if isinstance(new, Access) and new.tensor in self.arrays:
            name, start = self.arrays[new.tensor]
            return Access(name, (_less(new.index[0], start),))
        return new
