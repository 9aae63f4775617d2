"""The sizes that a session is called with: counted, kept in the cache, and named once they are frequent."""

import threading
from collections import Counter

from tilec.api.cache import Cache
from tilec.api.feeds import ShapeKey, Sizes
from tilec.api.size_counts import FILE, SizeCount, SizeCounts, counts_text, known_counts, merged
from tilec.errors import TilecError

FREQUENT = 32
"""Calls from which a set of sizes may be frequent."""

FREQUENT_SHARE = 0.1
"""Share of all calls from which it is."""

MOST = 256
"""Sets of sizes that are counted at a time; when there are more, the rarer half is forgotten."""


class ObservedSizes:
    """Counts of one session. What is not yet in the file of the model `sha256` is added to it when the number of calls
    has doubled, from `FREQUENT` on, and by `keep`; of two processes that write at the same time one may lose counts."""

    def __init__(self, sizes: Sizes, cache: Cache, sha256: str) -> None:
        self._sizes = sizes
        self._cache = cache
        self._file = cache.model(sha256) / FILE
        self._lock = threading.Lock()
        self._seen: Counter[ShapeKey] = Counter()
        self._calls = 0
        self._kept: Counter[ShapeKey] = Counter()
        self._kept_calls = 0
        self._due = FREQUENT

    def add(self, key: ShapeKey) -> bool:
        """Count a call that was served; returns whether its sizes are frequent by now."""
        with self._lock:
            self._calls += 1
            self._seen[key] += 1
            frequent = self._seen[key] >= FREQUENT and self._seen[key] >= FREQUENT_SHARE * self._calls
            if len(self._seen) > MOST:
                self._forget_rare()
            due = self._calls >= self._due
            if due:
                self._due *= 2
        if due:
            self.keep()
        return frequent

    def keep(self) -> None:
        """Add what was counted since the last time to the file; a cache that cannot be written is no error."""
        with self._lock:
            new = self._seen - self._kept
            calls = self._calls - self._kept_calls
            self._kept, self._kept_calls = Counter(self._seen), self._calls
        if calls:
            total = merged(known_counts(self._file), SizeCounts(calls, tuple(self._counted(new))))
            self._cache.keep(self._file, counts_text(total))

    def _counted(self, new: "Counter[ShapeKey]") -> list[SizeCount]:
        counted = []
        for key, calls in new.items():
            try:
                counted.append(SizeCount(self._sizes.of(key), calls))
            except TilecError:
                continue  # inputs that disagree, which onnxruntime took
        return counted

    def _forget_rare(self) -> None:
        kept = self._seen.most_common(MOST // 2)
        self._seen = Counter(dict(kept))
        self._kept = Counter({key: self._kept[key] for key, _ in kept})
