"""Predicted traffic of operands that tiles read in place through a cache, which keeps what a task reads again."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tilec.ir.program import Program
from tilec.lower.counts.cache_traffic import cache_level, traffic_of_accesses
from tilec.lower.counts.contiguous_accesses import ContiguousAccess, reads_in_place
from tilec.lower.counts.traffic import levels_passed, passes_cache
from tilec.lower.counts.transfers import transfers

_NO_SYMBOLS: Mapping[str, int] = MappingProxyType({})


def traffic_in_place(program: Program, symbols: Mapping[str, int] = _NO_SYMBOLS) -> dict[str, int]:
    """Cache that holds tiles -> bytes that it reads for operands that tiles above it read in place below it. Raises
    KeyError for a symbol without a value."""
    every = transfers(program, symbols)
    passing: dict[str, list[ContiguousAccess]] = {}
    for read in reads_in_place(every):
        for level in levels_passed(program, every, read):
            if passes_cache(level, read, every):
                passing.setdefault(level.name, []).append(read)
    moved: dict[str, int] = {}
    for name, reads in passing.items():
        touched = traffic_of_accesses(reads, every, cache_level(program.levels, every.rank[name]))
        moved[name] = round(sum(each.fetched for each in touched.values()))
    return moved
