"""Curves of a bounds recipe: its Einsums and chains, run in turn, each with the whole buffer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from math import prod

from tilec.bounds.area import Design, Die, best, designs, evenly
from tilec.bounds.chain.chain import Product, ProductChain
from tilec.bounds.chain.segments import (
    ChainCurve,
    ChainPoint,
    Choices,
    alone,
    chain_curve,
    segmented_curve,
    unfused_curve,
)
from tilec.bounds.chain.untiled_fusion import untiled_curve
from tilec.bounds.einsum.cache import cached
from tilec.bounds.einsum.einsum import Einsum, parse_einsum
from tilec.errors import ConfigError
from tilec.spec.bounds import Area, BoundsRecipe, Operator, Part


@dataclass(frozen=True)
class Bounds:
    """Bounds of a recipe: the curve of its mapspace, that of unfused operators, and the number of multiply-adds."""

    curve: ChainCurve
    unfused: ChainCurve
    macs: int


@dataclass(frozen=True)
class Study:
    """The fastest designs of a die for the curve and for unfused operators."""

    fused: Design
    unfused: Design

    @property
    def speedup(self) -> float:
        """Throughput relative to that without fusion."""
        return self.fused.throughput / self.unfused.throughput

    @property
    def buffer_saved(self) -> float:
        """Share of the unfused design's buffer that the fused one does not need."""
        return 1 - self.fused.buffer / self.unfused.buffer


def einsum_of_part(part: Part) -> Einsum:
    """The Einsum of a part.  Raises ConfigError as `parse_einsum` does, and for a chain."""
    if part.einsum is None:
        raise ConfigError("the part is a chain, not an Einsum", part.name or None)
    return parse_einsum(part.einsum, part.dims, part.bits)


def chain_of_part(part: Part) -> ProductChain:
    """The chain of a part.  Raises ConfigError where operators do not follow each other, and for an Einsum."""
    if part.chain is None or not isinstance(part.bits, int):
        raise ConfigError("the part is an Einsum, not a chain", part.name or None)
    return ProductChain(tuple(_product(each, part.bits) for each in part.chain))


def _product(given: Operator, bits: int) -> Product:
    return Product(
        given.name, given.m, given.k, given.n, given.heads, given.batches, given.rows,
        input_bits=bits, weight_bits=given.weight_bits or bits, output_bits=bits,
    )  # fmt: skip


def bounds_of(recipe: BoundsRecipe) -> Bounds:
    """The curves of a recipe.  Raises ConfigError and UnsupportedError for workloads that cannot be bounded."""
    fused, unfused, macs = [], [], 0
    for position, part in enumerate(recipe.workload):
        if part.chain is None:
            einsum = einsum_of_part(part)
            curve = _single(part.name or f"einsum{position}", einsum, recipe)
            macs += prod(einsum.extents.values())
            fused.append(curve)
            unfused.append(curve)
        else:
            chain = chain_of_part(part)
            macs += chain.macs
            unfused.append(unfused_curve(chain, recipe.mapspace == "oro+"))
            fused.append(unfused[-1] if recipe.fusion == "none" else _fused(chain, recipe))
    return Bounds(reduce(in_turn, fused), reduce(in_turn, unfused), macs)


def _single(name: str, einsum: Einsum, recipe: BoundsRecipe) -> ChainCurve:
    curve = cached(einsum, recipe.mapspace)
    choices = Choices()
    return choices.curve(curve.mapspace, alone(name, curve, choices))


def _fused(chain: ProductChain, recipe: BoundsRecipe) -> ChainCurve:
    ragged = recipe.mapspace == "oro+"
    if recipe.fusion == "untiled":
        return untiled_curve(chain, ragged)
    if recipe.fusion == "none":
        return unfused_curve(chain, ragged)
    find = segmented_curve if recipe.cuts else chain_curve
    return find(chain, recipe.fusion, recipe.scheme, ragged)


def in_turn(one: ChainCurve, other: ChainCurve) -> ChainCurve:
    """The curve of two workloads that run one after the other, each with the whole buffer."""
    points: list[ChainPoint] = []
    for buffer in sorted({point.buffer_bytes for curve in (one, other) for point in curve.points}):
        first, second = one.at(buffer), other.at(buffer)
        if first is not None and second is not None:
            moved = first.traffic_bytes + second.traffic_bytes
            points.append(ChainPoint(buffer, first.accesses + second.accesses, moved, first.segments + second.segments))
    mapspace = "; ".join(dict.fromkeys(f"{one.mapspace}; {other.mapspace}".split("; ")))
    return ChainCurve(mapspace, one.mappings + other.mappings, tuple(points))


def study(bounds: Bounds, area: Area) -> Study:
    """The fastest fused and unfused designs on a die.  Raises ConfigError where nothing fits it."""
    chosen = []
    for curve in (bounds.curve, bounds.unfused):
        candidates = mountain(curve, bounds.macs, area)
        if not candidates:
            least = curve.points[0].buffer_bytes
            raise ConfigError(f"nothing fits the die: {least} bytes of buffer are the least", "area")
        chosen.append(best(candidates))
    return Study(*chosen)


def mountain(curve: ChainCurve, macs: int, area: Area) -> list[Design]:
    """Designs of a die by rising buffer, none where nothing fits it.

    Work is in multiply-adds and traffic in bytes, or, to compare with the paper's notebook (`published`), in its units:
    a given number of operations, and words that count as bytes.
    """
    die = Die(area.die_mm2 * 1e6 * area.share, area.mac_um2, area.byte_um2, area.clock_hz, area.bandwidth)
    buffers = [point.buffer_bytes for point in curve.points]
    tried = buffers if area.samples is None else evenly(buffers[0], die, area.samples)
    return designs(die, area.published or macs, _moved(curve, area.published is not None), tried)


def _moved(curve: ChainCurve, words: bool) -> Callable[[int], float | None]:
    def moved(buffer: int) -> float | None:
        point = curve.at(buffer)
        return None if point is None else point.accesses if words else point.traffic_bytes

    return moved
