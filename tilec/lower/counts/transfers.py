"""Transfers of a program: its loads and stores with the region each of them moves and the loops around it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilec.ir.expr import Binary, Call, Const, Expr, Var, variables
from tilec.ir.program import Allocate, Buffer, ComputeTile, LoadTiles, Loop, Program, Statement, StoreTiles
from tilec.ir.scopes import scope_ranks
from tilec.lower.counts.loop_positions import Positions, Table

Span = tuple[Expr, Expr]
"""First and last index of one dimension, the last exclusive: [lo, hi)."""

_ZERO = Const(0)


@dataclass(frozen=True, slots=True)
class Around:
    """A loop around a statement: its variable, its extent, the position of the level whose units it is spread over
    (None: serial), and its stripe."""

    variable: str
    extent: Expr
    rank: int | None
    stripe: int = 1


@dataclass(frozen=True, slots=True)
class Transfer:
    """A load or a store: `held` is the buffer at the higher level, `below` the one at the lower level, `spans` the
    intersection of both windows and the tensor."""

    held: Buffer
    below: Buffer
    stored: bool
    spans: tuple[Span, ...]
    around: tuple[Around, ...]


@dataclass(frozen=True, slots=True)
class Transfers:
    """All transfers of a program, its tiles with the loops around them, and the positions of the loops."""

    positions: Positions
    rank: Mapping[str, int]
    buffers: Mapping[str, Buffer]
    extents: Mapping[str, Sequence[Expr]]
    moved: tuple[Transfer, ...]
    computed: tuple[tuple[ComputeTile, tuple[Around, ...]], ...]

    def repetitions(self, buffer: Buffer, around: Sequence[Around]) -> tuple[list[Around], set[str]]:
        """The loops that repeat an action at the level of `held`, and the variables of the loops that spread it over
        units of higher levels, which act collectively."""
        shared = {loop.variable for loop in around if loop.rank is not None and loop.rank > self.rank[buffer.level]}
        return [loop for loop in around if loop.variable not in shared], shared

    def ragged(self, loops: Iterable[Around]) -> list[Table]:
        """Indicator tables (1 or 0) of the valid positions of loops whose extents depend on other loops."""
        return [
            self.positions.table(Binary("<", Var(loop.variable), loop.extent)) for loop in loops if self.varies(loop)
        ]

    def varies(self, loop: Around) -> bool:
        """Whether the extent of a loop depends on other loops."""
        return bool(variables(loop.extent) & self.positions.extents.keys())


def transfers(program: Program, symbols: Mapping[str, int]) -> Transfers:
    """Collect the transfers of a program. Raises KeyError for a symbol without a value in the extent of a loop."""
    scopes = scope_ranks(program.levels)
    positions = Positions(symbols)
    buffers: dict[str, Buffer] = {b.name: b for b in program.parameters}

    def walk(body: Iterable[Statement], around: tuple[Around, ...]) -> Iterator[tuple[Statement, tuple[Around, ...]]]:
        for statement in body:
            if isinstance(statement, Loop):
                rank = scopes[statement.scope] if statement.kind == "spread" else None
                inner = Around(statement.variable, statement.extent, rank, statement.stripe)
                positions.extents[statement.variable] = int(positions.table(statement.extent).values.max(initial=0))
                yield from walk(statement.body, (*around, inner))
                continue
            if isinstance(statement, Allocate):
                buffers[statement.buffer.name] = statement.buffer
            yield statement, around

    statements = list(walk(program.body, ()))
    computed = tuple((statement, around) for statement, around in statements if isinstance(statement, ComputeTile))
    extents: dict[str, Sequence[Expr]] = {tile.expr.tensor: tile.expr.shape for tile, _ in computed}
    extents |= {b.tensor: b.shape for b in program.parameters}
    moved: list[Transfer] = []
    for statement, around in statements:
        if isinstance(statement, LoadTiles | StoreTiles):
            target, source = buffers[statement.target], buffers[statement.source]
            extent = extents[target.tensor]
            if isinstance(statement, LoadTiles):
                spans = _common((target.lo, source.lo), (target.hi, source.hi), extent)
                moved.append(Transfer(target, source, False, spans, around))
            else:
                los, his = (statement.lo or source.lo, target.lo), (statement.hi or source.hi, target.hi)
                moved.append(Transfer(source, target, True, _common(los, his, extent), around))
    rank = {level.name: position for position, level in enumerate(program.levels)}
    return Transfers(positions, rank, buffers, extents, tuple(moved), computed)


def length(span: Span) -> Expr:
    """Number of elements of a span; 0 where it ends before it begins."""
    lo, hi = span
    return Call("maximum", (Binary("-", hi, lo), _ZERO))


def _common(
    los: tuple[Sequence[Expr], Sequence[Expr]], his: tuple[Sequence[Expr], Sequence[Expr]], extent: Sequence[Expr]
) -> tuple[Span, ...]:
    """Intersection of two windows and the tensor."""
    return tuple(
        (_extremum("maximum", (a, b, _ZERO)), _extremum("minimum", (c, d, whole)))
        for a, b, c, d, whole in zip(*los, *his, extent, strict=True)
    )


def _extremum(fn: str, ends: Sequence[Expr]) -> Expr:
    first, *rest = dict.fromkeys(ends)
    for end in rest:
        first = Call(fn, (first, end))
    return first
