"""Places of buffers: a pass over a program without barriers that decides the offset of every buffer of a level with
addresses (memory management; Welder, 4.2).

Buffers whose lifetimes do not meet share bytes. Barriers are placed afterwards, since a reuse of bytes by other units
is a conflict like one of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tilec.ir.address_spaces import address_spaces, at_most, place_bytes
from tilec.ir.algebra import simplify
from tilec.ir.concurrency import iterations_per_unit
from tilec.ir.expr import Binary, Call, Const, Expr, constant_value
from tilec.ir.lifetimes import spans, statements
from tilec.ir.memory_plan import Life, plan_memory
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate, Buffer, Loop, Statement
from tilec.lower.barriers import with_barriers


def with_places_and_barriers(
    body: tuple[Statement, ...], parameters: Iterable[Buffer], levels: tuple[PlanLevel, ...]
) -> tuple[Statement, ...]:
    """The statements with offsets of buffers and, in front of each one that conflicts with accesses of other units, a
    barrier.

    At a barrier iterations of a spread loop wait for each other, so that a unit holds the buffers of several: places
    are decided again where a barrier has that effect.
    """
    if not address_spaces(levels):
        return with_barriers(body, parameters, levels)
    parameters, iterations = tuple(parameters), iterations_per_unit(body, levels)
    included = {name: {number} for name, number in iterations.items()}
    while True:
        result = with_barriers(with_places(body, levels, iterations), parameters, levels)
        needed = iterations_per_unit(result, levels)
        more = {name: n for name, n in needed.items() if n not in included.setdefault(name, {Const(1)})}
        if not more:
            return result
        for name, number in more.items():
            included[name].add(number)
            iterations[name] = _larger(iterations.get(name, Const(1)), number)


def with_places(
    body: tuple[Statement, ...], levels: Sequence[PlanLevel], iterations: Mapping[str, Expr] | None = None
) -> tuple[Statement, ...]:
    """The statements with the offsets of their buffers; those of levels without addresses, and buffers without a use,
    have none. `iterations` as of `iterations_per_unit`, by default of this body."""
    spaces = address_spaces(levels)
    buffers = [s.buffer for s in statements(body) if isinstance(s, Allocate) and s.buffer.level in spaces]
    if not buffers:
        return body
    if iterations is None:
        iterations = iterations_per_unit(body, levels)
    by_name, alive = {level.name: level for level in levels}, spans(body)
    offsets: dict[str, Expr] = {}
    for space in dict.fromkeys(spaces.values()):
        fixed: list[Life] = []
        symbolic: list[_Block] = []
        for buffer in buffers:
            if spaces[buffer.level] != space or buffer.name not in alive:
                continue
            number = iterations.get(buffer.name, Const(1))
            size = place_bytes(buffer, space, by_name[buffer.level], number)
            value, (born, dies) = constant_value(size), alive[buffer.name]
            if value is None:
                symbolic.append(_Block(buffer.name, size, born, dies))
            else:
                fixed.append(Life(buffer.name, value, born, dies))
        arena = plan_memory(fixed, space.alignment)
        offsets |= {name: Const(offset) for name, offset in arena.offsets.items()}
        if symbolic:
            placed = [_Block(f.name, Const(f.size), f.born, f.dies, Const(arena.offsets[f.name])) for f in fixed]
            offsets |= _symbolic(symbolic, placed)
    return _replaced(body, offsets)


def _larger(a: Expr, b: Expr) -> Expr:
    return simplify(Call("maximum", (a, b)))


@dataclass(frozen=True, slots=True)
class _Block:
    """Bytes of a buffer from step `born` to step `dies`, both included, at `offset`."""

    name: str
    size: Expr
    born: int
    dies: int
    offset: Expr = Const(0)

    @property
    def end(self) -> Expr:
        return simplify(Binary("+", self.offset, self.size))

    def meets(self, other: _Block) -> bool:
        """Whether both are alive at some step."""
        return self.born <= other.dies and other.born <= self.dies

    def clear_of(self, other: _Block) -> bool:
        """Whether the bytes of both are disjoint for all sizes."""
        return at_most(self.end, other.offset) or at_most(other.end, self.offset)


def _symbolic(blocks: Sequence[_Block], placed: list[_Block]) -> dict[str, Expr]:
    """Offsets of buffers whose size depends on symbols, first born first: the first place that is free for all sizes,
    which is the start or the end of a buffer placed before, else behind all that are alive at the same time."""
    offsets: dict[str, Expr] = {}
    for block in sorted(blocks, key=lambda each: (each.born, each.name)):
        busy = [other for other in placed if other.meets(block)]
        behind: Expr = Const(0)
        for other in busy:
            behind = _larger(behind, other.end)
        options = (replace(block, offset=at) for at in dict.fromkeys((Const(0), *(other.end for other in placed))))
        free = next((option for option in options if all(option.clear_of(other) for other in busy)), None)
        chosen = free or replace(block, offset=behind)
        offsets[block.name] = chosen.offset
        placed.append(chosen)
    return offsets


def _replaced(body: tuple[Statement, ...], offsets: Mapping[str, Expr]) -> tuple[Statement, ...]:
    result: list[Statement] = []
    for statement in body:
        match statement:
            case Allocate(buffer):
                result.append(Allocate(replace(buffer, offset=offsets.get(buffer.name))))
            case Loop():
                result.append(replace(statement, body=_replaced(statement.body, offsets)))
            case _:
                result.append(statement)
    return tuple(result)
