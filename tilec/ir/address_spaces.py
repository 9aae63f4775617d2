"""Address spaces of a tile program's levels and the places of buffers in them.

Buffers of an explicit level with addresses lie in an instance of that level. Explicit levels of one pool take their
bytes from it, so their buffers have places in the pool: a buffer of a level that `n` pools hold takes an equal share of
each, at the same offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import lcm

from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, constant_value
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Buffer
from tilec.ir.storage import storage_alignment, stored_bytes
from tilec.ir.upper_envelope import at_most, total


@dataclass(frozen=True, slots=True)
class AddressSpace:
    """Of a level, or `pooled`: of the pool of that name. Places are multiples of `alignment` bytes."""

    name: str
    alignment: int
    capacity: int | None
    pooled: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes `[begin, end)` of an address space."""

    space: AddressSpace
    begin: Expr
    end: Expr


def address_spaces(levels: Iterable[PlanLevel]) -> dict[str, AddressSpace]:
    """Level -> its address space; levels without addresses are left out, and are not part of a pool's."""
    explicit = [level for level in levels if level.managed == "explicit"]
    spaces: dict[str, AddressSpace] = {}
    for level in explicit:
        if level.alignment is None:
            continue
        sharing = [other.alignment for other in explicit if level.pool is not None and _pool(other) == _pool(level)]
        if level.pool is None or None in sharing:
            spaces[level.name] = AddressSpace(level.name, level.alignment, level.capacity)
        else:
            alignment = lcm(*(each for each in sharing if each is not None))
            spaces[level.name] = AddressSpace(level.pool.name, alignment, level.pool.capacity, pooled=True)
    return spaces


def _pool(level: PlanLevel) -> str:
    return level.pool.name if level.pool is not None else ""


def place_bytes(buffer: Buffer, space: AddressSpace, level: PlanLevel, iterations: Expr) -> Expr:
    """Bytes of the address space that a buffer at a level takes: its pipeline copies for the concurrent `iterations` of
    a unit, each rounded up to the alignment."""
    size = stored_bytes(buffer)
    divided = level.pool.instances if level.pool is not None and space.pooled else 1
    size = rounded_up(size, divided * place_alignment(buffer, space))
    if divided > 1:
        size = Binary("//", size, Const(divided))
    number = _product(iterations, buffer.copies)
    return simplify(Binary("*", size, number))


def place_alignment(buffer: Buffer, space: AddressSpace) -> int:
    """What the offset of a buffer is a multiple of."""
    return lcm(space.alignment, storage_alignment(buffer))


def rounded_up(size: Expr, unit: int) -> Expr:
    """The next multiple of a unit."""
    if unit == 1:
        return size
    match size:
        case Const(int() as value):
            return Const(-(-value // unit) * unit)
    return Binary("*", Binary("//", Binary("+", size, Const(unit - 1)), Const(unit)), Const(unit))


def _product(iterations: Expr, copies: int) -> Expr:
    return iterations if copies == 1 else Binary("*", iterations, Const(copies))


def places(buffers: Iterable[Buffer], levels: Sequence[PlanLevel], iterations: Mapping[str, Expr]) -> dict[str, Place]:
    """Buffer -> its place; buffers without an offset are left out. `iterations` as of `iterations_per_unit`."""
    spaces, by_name = address_spaces(levels), {level.name: level for level in levels}
    found: dict[str, Place] = {}
    for buffer in buffers:
        space = spaces.get(buffer.level)
        if space is None or buffer.offset is None:
            continue
        size = place_bytes(buffer, space, by_name[buffer.level], iterations.get(buffer.name, Const(1)))
        found[buffer.name] = Place(space, buffer.offset, total(buffer.offset, size))
    return found


def overlapping(by_name: Mapping[str, Place]) -> Iterator[tuple[str, str]]:
    """Pairs of buffers whose places are not known to be apart."""
    for space in dict.fromkeys(place.space for place in by_name.values()):
        inside = [(name, place) for name, place in by_name.items() if place.space == space]
        fixed: list[tuple[int, int, str]] = []
        symbolic: list[tuple[str, Place]] = []
        for name, place in inside:
            begin, end = constant_value(place.begin), constant_value(place.end)
            if begin is None or end is None:
                symbolic.append((name, place))
            elif begin < end:
                fixed.append((begin, end, name))
        fixed.sort()
        for number, (_, end, name) in enumerate(fixed):
            for begin, _, other in fixed[number + 1 :]:
                if begin >= end:
                    break
                yield name, other
        for number, (name, place) in enumerate(symbolic):
            others = (*symbolic[number + 1 :], *((other, by_name[other]) for _, _, other in fixed))
            yield from ((name, other) for other, there in others if not apart(place, there))


def apart(a: Place, b: Place) -> bool:
    """Whether two places of one address space are disjoint for all sizes."""
    return at_most(a.end, b.begin) or at_most(b.end, a.begin)
