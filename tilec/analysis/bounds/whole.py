"""Subjects for chains, workloads and whole graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilec.analysis.bounds.subject import Attained, Measured, Slope, Subject
from tilec.bounds.chain.chain import ProductChain
from tilec.bounds.chain.segments import ChainCurve, Segment, parallel_segments, segmented_curve
from tilec.bounds.einsum.lower import LowerBound, compulsory, lb
from tilec.bounds.graph.best_known import GraphCurve
from tilec.bounds.graph.chains import FoundChain
from tilec.bounds.workload import Bounds, Study, bounds_of, chain_of_part, einsum_of_part, mountain, study
from tilec.errors import several
from tilec.spec.bounds import BoundsRecipe

BEST_KNOWN = "best known"

InTasks = Callable[[int, int], Attained | str]
"""The best mapping at a capacity in tasks for some units, or why there is none."""


@dataclass(frozen=True)
class _Segments:
    """The segments of a chain, as text for people."""

    segments: tuple[Segment, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.segments))


def chain_slope(name: str, curve: ChainCurve) -> Slope:
    """The slope of a curve of a chain."""
    points = (Attained(p.buffer_bytes, p.traffic_bytes, p.accesses, _Segments(p.segments)) for p in curve.points)
    return Slope(name, curve.mapspace, tuple(points))


def fused(mapspace: str) -> str:
    """The name of a mapspace with fused operators."""
    return f"{mapspace} fused"


def chain_compulsory(chain: ProductChain) -> int:
    """Bytes of the first input, all weights and the last output."""
    first, last = chain.operators[0], chain.operators[-1]
    weights = sum(each.weight_words * each.batches * each.weight_bits for each in chain.operators)
    return -(-(first.input_words * first.input_bits + weights + last.output_words * last.output_bits) // 8)


def of_chain(occurrence: FoundChain, mapspaces: Sequence[str]) -> Subject:
    """The subject of a chain of a graph, segmented wherever that moves less."""
    chain = occurrence.chain
    slopes = (chain_slope(fused(name), segmented_curve(chain, ragged=name == "oro+")) for name in mapspaces)
    least = chain_compulsory(chain)
    return Subject(
        name=occurrence.name,
        text=_products(chain),
        sizes={},
        bits=_bits(chain),
        compulsory=least,
        operations=2 * chain.macs,
        slopes=tuple(slopes),
        lower=lambda _: LowerBound(least, "compulsory"),
        width=_width(chain),
        count=occurrence.count,
        parallel=_chain_in_tasks(chain) if "oro+" in mapspaces else None,
    )


def _chain_in_tasks(chain: ProductChain) -> InTasks:
    """The best cut of a chain in tasks for some units, as `Subject.parallel`."""

    def find(capacity: int, units: int) -> Attained | str:
        moved = parallel_segments(chain, units, capacity)
        if moved is None:
            return f"nothing fits in {units} tasks"
        return Attained(capacity, moved, None, f"the best cut in {units} tasks")

    return find


def _products(chain: ProductChain) -> str:
    """`128x64x128 (12 heads) > 128x128x64 (12 heads)`: m, k and n of every product."""
    return " > ".join(
        f"{each.m}x{each.k}x{each.n}" + (f" ({each.heads} heads)" if each.heads > 1 else "") for each in chain.operators
    )


def _width(chain: ProductChain) -> int:
    return max(max(each.input_bits, each.weight_bits) for each in chain.operators)


def _bits(chain: ProductChain) -> dict[str, int]:
    first = chain.operators[0]
    weights = {f"W of {each.name}": each.weight_bits for each in chain.operators}
    return {"I": first.input_bits, **weights, "O": chain.operators[-1].output_bits}


def of_graph(name: str, nodes: int, curve: GraphCurve, width: int, parallel: InTasks | None = None) -> Subject:
    """The subject of a whole graph; `width` is the width of the widest multiplied element in bits, `parallel` the best
    known cut in tasks."""
    points = (Attained(p.buffer_bytes, p.traffic_bytes, None, p.mapping) for p in curve.points)
    return Subject(
        name=name,
        text=f"the whole graph of {several(nodes, 'node')}",
        sizes={},
        bits={},
        compulsory=curve.compulsory,
        operations=curve.operations,
        slopes=(Slope(BEST_KNOWN, curve.mapspace, tuple(points)),),
        lower=curve.lower,
        width=width,
        parallel=parallel,
    )


def of_workload(name: str, recipe: BoundsRecipe, mapspaces: Sequence[str]) -> Subject:
    """The subject of a bounds recipe: its curves, unfused curves where operators are fused, its area study.

    Raises ConfigError and UnsupportedError as `bounds_of` does.
    """
    bounds_by_mapspace = {
        mapspace: bounds_of(recipe.model_copy(update={"mapspace": mapspace})) for mapspace in mapspaces
    }
    curves = {
        name: curve for mapspace, bounds in bounds_by_mapspace.items() for name, curve in _curves(mapspace, bounds)
    }
    macs = next(iter(bounds_by_mapspace.values())).macs
    einsums = [einsum_of_part(part) for part in recipe.workload if part.chain is None]
    chains = [chain_of_part(part) for part in recipe.workload if part.chain is not None]
    chained = sum(map(chain_compulsory, chains))

    def lower(capacity: int) -> LowerBound:
        parts = [lb(einsum, capacity) for einsum in einsums]
        proved = any(part.because != "compulsory" for part in parts)
        moved = chained + sum(part.traffic_bytes for part in parts)
        return LowerBound(moved, "matrix product" if proved else "compulsory")

    area = recipe.area
    studied = (
        [_studied(mapspace, study(bounds, area)) for mapspace, bounds in bounds_by_mapspace.items()] if area else []
    )
    return Subject(
        name=name,
        text="; ".join([*(einsum.text for einsum in einsums), *map(_products, chains)]),
        sizes={},
        bits={},
        compulsory=chained + sum(map(compulsory, einsums)),
        operations=2 * macs,
        slopes=tuple(chain_slope(slope, curve) for slope, curve in curves.items()),
        lower=lower,
        width=max([*map(_width, chains), *(operand.bits for einsum in einsums for operand in einsum.inputs)]),
        notes=(f"convention: {recipe.convention}", *studied),
        measured=tuple(Measured(each.name, each.capacity, each.traffic) for each in recipe.measured),
        mountains={slope: mountain(curve, macs, area) for slope, curve in curves.items()} if area else {},
    )


def _curves(mapspace: str, bounds: Bounds) -> list[tuple[str, ChainCurve]]:
    """The curve of unfused operators, and the fused one where it differs."""
    alone = [(mapspace, bounds.unfused)]
    return alone if bounds.curve == bounds.unfused else [*alone, (fused(mapspace), bounds.curve)]


def _studied(mapspace: str, result: Study) -> str:
    """The fastest designs of a die with and without fusion, in one sentence."""
    both = (result.fused, result.unfused)
    one, other = (f"{each.throughput / 1e12:.2f} T/s with {each.buffer / 1e6:.0f} MB" for each in both)
    gain = f"{result.speedup:.2f} times the throughput, {100 * result.buffer_saved:.0f} % less buffer"
    return f"{mapspace}, fastest designs of the die: fused {one} of buffer, alone {other}: {gain}"
