"""Predicted traffic of a cache for kernels that run one after another: what earlier ones leave in it is not fetched.

The cache is empty before the first kernel, so constants and inputs are fetched once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tilec.ir.traffic import Traffic
from tilec.lower.counts.cache_traffic import CacheLevel, Touched


@dataclass(frozen=True, slots=True)
class Run:
    """A kernel in the order of a plan: the group that it runs, what it touches of every tensor when it finds the cache
    empty, and results that it stores past the cache."""

    name: str
    touched: Mapping[str, Touched]
    streamed: Collection[str] = ()

    @property
    def distinct(self) -> float:
        """Bytes that the kernel touches."""
        return sum(each.distinct for each in self.touched.values())


def traffic_of_runs(runs: Sequence[Run], cache: CacheLevel, leaving: Collection[str]) -> list[Traffic]:
    """Bytes that a cache fetches for every run, and writes back of its results.

    A tensor that was touched before is still there as far as no more than the cache holds was touched since: for the
    part f of it, the rest (1 - f) of the earlier kernel, those between, and f of the later one. A result is written
    back where it is evicted before it is overwritten, and at the end where it is `leaving`. Its place is used again by
    later results once nobody reads it; a cache with write-allocate fetches the place of a result that is not there.
    """
    state = _State(runs, cache, leaving)
    for place, run in enumerate(runs):
        state.run(place, run)
    state.end()
    return [Traffic(round(read), round(size)) for read, size in zip(state.fetched, state.written, strict=True)]


@dataclass(slots=True)
class _Entry:
    """A tensor, or its place after its last use: the run that touched it last, its bytes, those of them that the cache
    must write back, and the run that wrote them."""

    last: int
    size: float
    dirty: float = 0.0
    writer: int = 0


class _State:
    """What was touched, the least recent first (an LRU stack of tensors), and `free` places of results that are read no
    more, those released last at the end."""

    def __init__(self, runs: Sequence[Run], cache: CacheLevel, leaving: Collection[str]) -> None:
        self.runs, self.cache, self.leaving = runs, cache, leaving
        self.fetched, self.written = [0.0] * len(runs), [0.0] * len(runs)
        self.stack: dict[str, _Entry] = {}
        self.free: list[str] = []
        self.ends = {tensor: place for place, run in enumerate(runs) for tensor in run.touched}
        self.results = {t for run in runs for t, each in run.touched.items() if each.written and t not in leaving}

    def run(self, place: int, run: Run) -> None:
        """Read and write the tensors of a run."""
        kept = {tensor: self._kept(self.stack[tensor].last, run) for tensor in run.touched if tensor in self.stack}
        for tensor, each in run.touched.items():
            past = tensor in run.streamed
            known = self.stack.pop(tensor, None)
            entry = _Entry(place, each.distinct)
            if known is not None:
                there = kept[tensor] * min(each.distinct, known.size)
                self.fetched[place] += max(0.0, each.fetched - there)
                self.written[known.writer] += (1 - kept[tensor]) * known.dirty
                entry.dirty, entry.writer = kept[tensor] * known.dirty, known.writer
            else:
                missing = self._allocated(each.distinct, run) if each.written and tensor not in self.leaving else None
                missing = each.written if missing is None else missing
                self.fetched[place] += each.fetched or (missing if self.cache.write_allocate and not past else 0.0)
            if each.written:
                at_once = each.written if past else max(0.0, each.written - each.distinct)
                self.written[place] += at_once
                entry.dirty, entry.writer = each.written - at_once, place
            if not past:
                self.stack[tensor] = entry
        self.free += [t for t in run.touched if self.ends[t] == place and t in self.results and t in self.stack]

    def end(self) -> None:
        """Write back what leaves, and what was evicted before its place was used again."""
        nothing = Run("", {})
        for tensor, entry in self.stack.items():
            kept = 0.0 if tensor in self.leaving else self._kept(entry.last, nothing)
            self.written[entry.writer] += (1 - kept) * entry.dirty

    def _allocated(self, size: float, run: Run) -> float:
        """Bytes of a new result whose place is not in the cache; places that were released last are taken first."""
        missing = 0.0
        while size > 0 and self.free:
            entry = self.stack[self.free[-1]]
            taken, kept = min(size, entry.size), self._kept(entry.last, run)
            missing += taken * (1 - kept)
            part = taken / entry.size if entry.size else 1.0
            self.written[entry.writer] += (1 - kept) * part * entry.dirty
            entry.size, entry.dirty, size = entry.size - taken, (1 - part) * entry.dirty, size - taken
            if entry.size <= 0:
                del self.stack[self.free.pop()]
        return missing + size

    def _kept(self, before: int, run: Run) -> float:
        """Part of what run `before` touched that is in the cache when a later one touches it in the same order."""
        capacity, middle, between = self.cache.total, 0.0, set[str]()
        for tensor, entry in reversed(self.stack.items()):
            if entry.last <= before:
                break
            between.add(tensor)
            middle += entry.size
            if middle > capacity:
                return 0.0
        start = middle + self.runs[before].distinct
        end = middle + sum(each.distinct for tensor, each in run.touched.items() if tensor not in between)
        if max(start, end) <= capacity:
            return 1.0
        if min(start, end) > capacity:
            return 0.0
        return (capacity - min(start, end)) / (max(start, end) - min(start, end))
