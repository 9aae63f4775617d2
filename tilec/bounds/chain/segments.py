"""Curves of chains: operators unfused, all fused, or cut into segments (Orojenesis, segmentation)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite

import numpy as np

from tilec.bounds.chain import fused
from tilec.bounds.chain.buffer_requirement import Scheme
from tilec.bounds.chain.chain import Product, ProductChain
from tilec.bounds.chain.choices import MAX_PRODUCTS, Fusion
from tilec.bounds.chain.extended_templates import MEANING
from tilec.bounds.chain.fused import Mappings
from tilec.bounds.chain.step_curves import StepCurve, best, in_turn
from tilec.bounds.einsum.cache import cached, cached_parallel
from tilec.bounds.einsum.curve import Curve
from tilec.bounds.einsum.task_limit import most_tasks

_ROOM = {
    1: "room for the largest operator and all kept weights",
    2: "room for the largest group of operators that keep their weights (as the paper counts, may not be realisable)",
    "pipelined": "room for all weights and the largest input and output",
}
_TEMPLATES = {
    "ffmt": "fusion templates by position",
    "flat": "whole rows handed on (FLAT)",
    "flash": "fusion templates by position, pairs as FlashAttention",
}


@dataclass(frozen=True)
class Step:
    """Mapping of one operator: its `template`, tiles of its iterators (of one head), and whether the tile of W, or all
    of W beside smaller tiles, is kept."""

    operator: str
    template: str
    tiles: Mapping[str, int]
    kept: bool = False
    all_kept: bool = False

    def __str__(self) -> str:
        tile = " ".join(f"{dim}:{size}" for dim, size in self.tiles.items())
        suffix = ", all of W kept" if self.all_kept else ", W kept" if self.kept else ""
        return f"{self.operator} ({self.template}, tile {tile}{suffix})"


@dataclass(frozen=True)
class Segment:
    """Fused operators, or a single one, and the words that they move."""

    steps: tuple[Step, ...]
    accesses: int

    @property
    def operators(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(step.operator for step in self.steps)

    def __str__(self) -> str:
        return " > ".join(str(step) for step in self.steps)


@dataclass(frozen=True)
class ChainPoint:
    """A Pareto-optimal mapping: `buffer_bytes`, and the `accesses` (words) and bytes moved by all `segments`."""

    buffer_bytes: int
    accesses: int
    traffic_bytes: int
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class ChainCurve:
    """Points by rising buffer and falling traffic, the best of `mappings` mappings of the space `mapspace`.

    It is a bound only for mappings of that space: no partial sums are passed on, nothing is computed twice.
    """

    mapspace: str
    mappings: int
    points: tuple[ChainPoint, ...]

    def at(self, capacity: int) -> ChainPoint | None:
        """The best point within `capacity` bytes; None when no mapping fits."""
        fitting = bisect_right(self.points, capacity, key=lambda point: point.buffer_bytes)
        return self.points[fitting - 1] if fitting else None

    @property
    def largest_useful_buffer(self) -> int:
        """Bytes of buffer beyond which traffic does not fall."""
        return self.points[-1].buffer_bytes


@dataclass
class Choices:
    """Numbered mappings of parts of a chain; a segment is constructed only when it is looked up."""

    _starts: list[int] = field(default_factory=list)
    _makers: list[Callable[[int], Segment]] = field(default_factory=list)
    _next: int = 0
    mappings: int = 0

    def add(self, count: int, make: Callable[[int], Segment], mappings: int) -> int:
        """Add `count` mappings, the best of `mappings`; returns the number of the first."""
        first = self._next
        self._starts.append(first)
        self._makers.append(make)
        self._next += count
        self.mappings += mappings
        return first

    def segment(self, number: int) -> Segment:
        """The segment with this number."""
        position = bisect_right(self._starts, number) - 1
        return self._makers[position](number - self._starts[position])

    def curve(self, mapspace: str, stairs: StepCurve) -> ChainCurve:
        """The curve of a step curve whose choices these are."""
        known: dict[int, Segment] = {}
        points = []
        columns = zip(stairs.buffer.tolist(), stairs.traffic.tolist(), stairs.choices.T.tolist(), strict=True)
        for buffer, traffic, numbers in columns:
            chosen = [number for number in numbers if number >= 0]
            for number in chosen:
                if number not in known:
                    known[number] = self.segment(number)
            segments = tuple(known[number] for number in chosen)
            points.append(ChainPoint(buffer, sum(each.accesses for each in segments), traffic, segments))
        return ChainCurve(mapspace, self.mappings, tuple(points))


def alone(name: str, curve: Curve, choices: Choices, slot: int = 0, slots: int = 1) -> StepCurve:
    """The step curve of a single Einsum."""

    def make(row: int) -> Segment:
        point = curve.points[row]
        return Segment((Step(name, "alone", point.mapping.tiles),), point.accesses)

    buffer = np.array([point.buffer_bytes for point in curve.points], np.int64)
    traffic = np.array([point.traffic_bytes for point in curve.points], np.int64)
    return StepCurve.of(buffer, traffic, choices.add(len(buffer), make, curve.mappings), slot, slots)


def _alone(chain: ProductChain, slot: int, ragged: bool, choices: Choices) -> StepCurve:
    product = chain.operators[slot]
    curve = cached(product.einsum(), "oro+" if ragged else "oro")
    return alone(product.name, curve, choices, slot, len(chain.operators))


def _segment(operators: Sequence[Product], mappings: Mappings, row: int) -> Segment:
    """A mapping of a front as a segment."""
    rows, width = mappings.rows[row], mappings.widths[row]
    steps, moved = [], 0
    for position, (product, choice) in enumerate(zip(operators, mappings.choices(row), strict=True)):
        sizes = {dim: int(size) for dim, size in fused.tile(product, choice, rows, width).items()}
        steps.append(Step(product.name, choice.template.name, sizes, choice.kept, choice.all_kept))
        moved += sum(int(words) for words in fused.words(operators, position, choice, rows, width))
    return Segment(tuple(steps), moved)


def _together(
    chain: ProductChain, first: int, end: int, fusion: Fusion, scheme: Scheme, ragged: bool, choices: Choices
) -> StepCurve:
    """The step curve of fused operators."""
    operators = chain.operators[first:end]
    mappings = fused.fused(operators, fusion, scheme, ragged)
    number = choices.add(len(mappings.buffer), lambda row: _segment(operators, mappings, row), mappings.costed)
    return StepCurve.of(mappings.buffer, mappings.traffic, number, first, len(chain.operators))


def _tiles(ragged: bool) -> str:
    return "tiles of any size" if ragged else "perfect factors"


def _mapspace(fusion: Fusion, scheme: Scheme, ragged: bool) -> str:
    limits = "no partial sums handed on, no recomputation"
    more = f" and {MEANING}" if fused.beyond(fusion, scheme, ragged) else ""
    return f"{_TEMPLATES[fusion]}{more}, {_tiles(ragged)}, {_ROOM[scheme]}, {limits}"


def unfused_curve(chain: ProductChain, ragged: bool = False) -> ChainCurve:
    """Every operator alone under its best mapping, with traffic added at equal buffer."""
    choices = Choices()
    stairs = [_alone(chain, slot, ragged, choices) for slot in range(len(chain.operators))]
    whole = stairs[0]
    for each in stairs[1:]:
        whole = in_turn(whole, each)
    return choices.curve(f"operators alone, {_tiles(ragged)}, all loop orders", whole)


def chain_curve(chain: ProductChain, fusion: Fusion = "ffmt", scheme: Scheme = 1, ragged: bool = False) -> ChainCurve:
    """The least traffic with the whole chain fused; for a single operator, over all its mappings.

    Raises UnsupportedError for more than `MAX_PRODUCTS` operators.
    """
    choices = Choices()
    count = len(chain.operators)
    if count == 1:
        return choices.curve(f"one operator, {_tiles(ragged)}, all loop orders", _alone(chain, 0, ragged, choices))
    stairs = _together(chain, 0, count, fusion, scheme, ragged, choices)
    return choices.curve(_mapspace(fusion, scheme, ragged), stairs)


def segmented_curve(
    chain: ProductChain, fusion: Fusion = "ffmt", scheme: Scheme = 1, ragged: bool = False
) -> ChainCurve:
    """The least traffic over all ways to cut the chain into fused segments or single operators.

    Segments run in turn, each with the whole buffer and rows of its own; a cut tensor goes through the backing store.
    """
    choices = Choices()
    count = len(chain.operators)
    reached: list[StepCurve] = []
    for end in range(1, count + 1):
        ways = []
        for first in range(max(0, end - MAX_PRODUCTS), end):
            if end - first == 1:
                last = _alone(chain, first, ragged, choices)
            else:
                last = _together(chain, first, end, fusion, scheme, ragged, choices)
            ways.append(in_turn(reached[first - 1], last) if first else last)
        reached.append(best(ways))
    mapspace = f"all cuts into at most {MAX_PRODUCTS} operators, {_mapspace(fusion, scheme, ragged)}"
    return choices.curve(mapspace, reached[-1])


def parallel_pairs(chain: ProductChain, units: int, rows: bool = False) -> list[tuple[int, int]]:
    """Bytes of buffer of one unit and of traffic of all, where `units` share the rows of two or more fused operators,
    with `rows` those mappings only whose last operator has whole rows.

    Heads that all operators have alike are batches: each has rows of its own. Empty where there are fewer rows than
    units.
    """
    operators = _headless(chain.operators)
    if operators[0].m < units:
        return []
    found = fused.fused(operators, "ffmt", 1, True, units)
    pairs = zip(found.buffer.tolist(), found.traffic.tolist(), strict=True)
    return [pair for row, pair in enumerate(pairs) if not rows or found.choices(row)[-1].n == "whole"]


def parallel_segments(chain: ProductChain, units: int, capacity: int) -> int | None:
    """The least bytes over all cuts of a chain into operators alone in tasks for all units, or in fewer where it has
    fewer, and fused ones whose rows the units share; None where nothing fits `capacity` bytes of each."""
    least: list[float] = [0]
    for end in range(1, len(chain.operators) + 1):
        ways = [least[-1] + _alone_in_tasks(chain.operators[end - 1], units, capacity)]
        for first in range(max(0, end - MAX_PRODUCTS), end - 1):
            part = ProductChain(chain.operators[first:end])
            moved = [traffic for buffer, traffic in parallel_pairs(part, units) if buffer <= capacity]
            ways.append(least[first] + min(moved, default=inf))
        least.append(min(ways))
    return int(least[-1]) if isfinite(least[-1]) else None


def _alone_in_tasks(product: Product, units: int, capacity: int) -> float:
    einsum = product.einsum()
    point = cached_parallel(einsum, min(units, most_tasks(einsum)), capacity).at(capacity)
    return inf if point is None else point.traffic_bytes


def _headless(operators: Sequence[Product]) -> Sequence[Product]:
    """The operators with a batch for every head where all have the same heads, and rows are few enough."""
    one = operators[0]
    if len({(each.heads, each.batches) for each in operators}) > 1 or one.m * one.heads > fused.MAX_RAGGED_ROWS:
        return operators
    return [replace(each, m=each.m * each.heads, batches=each.batches * each.heads, heads=1) for each in operators]
