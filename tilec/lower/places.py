"""Places of buffers: a pass over a program without barriers that decides the offset of every buffer of a level with
addresses (memory management; Welder, 4.2).

Buffers whose lifetimes do not meet share bytes. Barriers are placed afterwards, since a reuse of bytes by other units
is a conflict like one of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tilec.ir.address_spaces import address_spaces, place_alignment, place_bytes, rounded_up
from tilec.ir.concurrency import iterations_per_unit
from tilec.ir.expr import Const, Expr, constant_value
from tilec.ir.lifetimes import spans, statements
from tilec.ir.memory_plan import Life, plan_memory
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Allocate, Buffer, Loop, Statement
from tilec.ir.upper_envelope import at_most, largest, total
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
            iterations[name] = largest((iterations.get(name, Const(1)), number))


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
        lives: list[_Life] = []
        for buffer in buffers:
            if spaces[buffer.level] == space and buffer.name in alive:
                number = iterations.get(buffer.name, Const(1))
                size = place_bytes(buffer, space, by_name[buffer.level], number)
                lives.append(_Life(buffer.name, size, *alive[buffer.name], place_alignment(buffer, space)))
        offsets |= _offsets(lives, space.alignment)
    return _replaced(body, offsets)


@dataclass(frozen=True, slots=True)
class _Life:
    """A buffer that needs `size` bytes from step `born` to step `dies`, both included, at a multiple of `alignment`."""

    name: str
    size: Expr
    born: int
    dies: int
    alignment: int


@dataclass(frozen=True, slots=True)
class _Block:
    """The life of a buffer and its bytes `[begin, end)`."""

    life: _Life
    begin: Expr
    end: Expr

    def meets(self, life: _Life) -> bool:
        """Whether both are alive at some step."""
        return self.life.born <= life.dies and life.born <= self.life.dies

    def clear_of(self, begin: Expr, end: Expr) -> bool:
        """Whether the bytes of both are disjoint for all sizes."""
        return at_most(end, self.begin) or at_most(self.end, begin)


def _offsets(lives: Sequence[_Life], alignment: int) -> dict[str, Expr]:
    """Offsets of the buffers of one address space: best fit for those of fixed sizes, then the others around them."""
    fixed: dict[str, Life] = {}
    for life in lives:
        size = constant_value(life.size)
        if size is not None:
            fixed[life.name] = Life(life.name, size, life.born, life.dies, life.alignment)
    arena = plan_memory(list(fixed.values()), alignment)
    offsets: dict[str, Expr] = {name: Const(offset) for name, offset in arena.offsets.items()}
    placed = [
        _Block(life, Const(arena.offsets[life.name]), Const(arena.offsets[life.name] + fixed[life.name].size))
        for life in lives
        if life.name in fixed
    ]
    return offsets | _symbolic([life for life in lives if life.name not in fixed], placed, alignment)


def _symbolic(lives: Sequence[_Life], placed: list[_Block], alignment: int) -> dict[str, Expr]:
    """Offsets of buffers whose size depends on symbols, first born first: the first place that is free for all sizes,
    which is the start or the end of a buffer placed before, else behind all that are alive at the same time. Ends are
    multiples of `alignment`."""
    offsets: dict[str, Expr] = {}
    for life in sorted(lives, key=lambda each: (each.born, each.name)):
        busy = [other for other in placed if other.meets(life)]
        unit = life.alignment if life.alignment > alignment else 1
        starts = dict.fromkeys((Const(0), *(rounded_up(other.end, unit) for other in placed)))
        options = ((start, total(start, life.size)) for start in starts)
        free = (start for start, end in options if all(other.clear_of(start, end) for other in busy))
        start = next(free, None) or rounded_up(largest(other.end for other in busy), unit)
        offsets[life.name] = start
        placed.append(_Block(life, start, total(start, life.size)))
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
