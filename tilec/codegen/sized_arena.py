"""Places of tensors in arenas of a model with symbols: expressions that are legal at every size (memory planning, B24).

Best fit at the sizes that decisions are made for gives an order from the lowest place up. A tensor begins where the
highest of those ends that lie below it and live at the same time: any two that live together are ordered, so they
never overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.codegen.shape_program import NumberBuilder, aligned, largest
from tilec.ir.evaluate import integer
from tilec.ir.expr import Binary, Const, Expr
from tilec.ir.memory_plan import Life, plan_memory


@dataclass(frozen=True, slots=True)
class SizedLife:
    """A tensor of `size` bytes from step `born` to step `dies`, both included."""

    name: str
    size: Expr
    born: int
    dies: int


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor's arena, and the position of its byte offset there among the numbers."""

    arena: int
    offset: int


@dataclass(frozen=True, slots=True)
class SizedArena:
    """`places` by tensor; `sizes` the positions of the arenas' bytes among the numbers. `apart` has for each tensor
    those of its arena that share no byte with it at any size."""

    places: Mapping[str, Place]
    sizes: tuple[int, ...]
    apart: Mapping[str, frozenset[str]]


def sized_arena(
    lives: Sequence[SizedLife], numbers: NumberBuilder, pivots: Mapping[str, int], alignment: int
) -> SizedArena:
    """Give everything a place; offsets and sizes become numbers.

    Tensors whose sizes are known in different parts lie in arenas of their own: what lies below a tensor never moves
    when a call of onnxruntime reports a size.
    """
    by_part: dict[int, list[SizedLife]] = {}
    for life in lives:
        by_part.setdefault(numbers.part(life.size), []).append(life)
    places: dict[str, Place] = {}
    sizes: list[int] = []
    apart: dict[str, frozenset[str]] = {}
    for part in sorted(by_part):
        order = _bottom_up(by_part[part], pivots, alignment)
        ends: list[Expr] = []
        for number, life in enumerate(order):
            offset = numbers.add(largest(ends[n] for n in _below(order, number)))
            places[life.name] = Place(len(sizes), numbers.position(offset))
            size = numbers.add(aligned(numbers.add(life.size), alignment))
            ends.append(size if offset == Const(0) else numbers.add(Binary("+", offset, size)))
        apart |= _apart(order)
        sizes.append(numbers.position(largest(ends[n] for n in _below(order, len(order)))))
    return SizedArena(places, tuple(sizes), apart)


def _bottom_up(lives: Sequence[SizedLife], pivots: Mapping[str, int], alignment: int) -> list[SizedLife]:
    """Lives from the lowest place of best fit at the pivots to the highest; of two at one place, one is empty there."""
    sizes = {life.name: int(integer(life.size, pivots)) for life in lives}
    arena = plan_memory([Life(life.name, sizes[life.name], life.born, life.dies) for life in lives], alignment)
    return sorted(lives, key=lambda life: (arena.offsets[life.name], sizes[life.name]))


def _together(one: SizedLife, other: SizedLife) -> bool:
    return one.born <= other.dies and other.born <= one.dies


def _below(order: Sequence[SizedLife], number: int) -> list[int]:
    """The lives that a place must lie behind, without those that lie below another one of them; for the number behind
    the last, those that the arena must hold."""
    below: list[int] = []
    for n in range(number - 1, -1, -1):
        if number < len(order) and not _together(order[n], order[number]):
            continue
        if not any(_together(order[n], order[m]) for m in below):
            below.append(n)
    return below[::-1]


def _apart(order: Sequence[SizedLife]) -> dict[str, frozenset[str]]:
    """For each life those that lie below or above it at every size, directly or through others between."""
    above: list[set[int]] = [set() for _ in order]
    for n in range(len(order) - 1, -1, -1):
        for m in range(n + 1, len(order)):
            if m not in above[n] and _together(order[n], order[m]):
                above[n] |= {m} | above[m]
    apart: list[set[str]] = [{order[m].name for m in higher} for higher in above]
    for n, higher in enumerate(above):
        for m in higher:
            apart[m].add(order[n].name)
    return {life.name: frozenset(names) for life, names in zip(order, apart, strict=True)}
