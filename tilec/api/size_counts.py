"""How often a model was called with which sizes, as a file in the cache (`sizes.json`), and what a compile makes of it.

Sessions write it; `tilec compile --shapes-from FILE` takes the sizes that are called most as likely ones.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tilec.artifact import decode, encode, pretty
from tilec.errors import TilecError, UsageError, unreadable

FILE = "sizes.json"
"""Its name in the folder of what is known of a model."""

WRITER = "Sessions write it as sizes.json."

MOST = 64
"""Sets of sizes that are kept, those called most."""

LARGEST_TOTAL = 1 << 24
"""Calls from which all counts are halved: sizes that are called no more give way."""

LIKELY = 4
"""Sets of sizes that a compile takes as likely."""

LIKELY_SHARE = 0.05
"""Share of all calls from which sizes are likely."""


@dataclass(frozen=True)
class SizeCount:
    """One set of sizes, by symbol, and the number of calls with it."""

    sizes: Mapping[str, int]
    calls: int


@dataclass(frozen=True)
class SizeCounts:
    """Sets of sizes, the most frequent first, and the number of all `calls`, those of sets that are not kept too."""

    calls: int = 0
    counts: tuple[SizeCount, ...] = field(default=())

    def likely(self) -> dict[str, list[int]]:
        """Symbol -> its sizes in the sets that are called most; the n-th sizes of all symbols belong together."""
        chosen = [each.sizes for each in self.counts[:LIKELY] if each.calls >= LIKELY_SHARE * self.calls]
        symbols = dict.fromkeys(symbol for sizes in chosen for symbol in sizes)
        return {symbol: [sizes[symbol] for sizes in chosen if symbol in sizes] for symbol in symbols}


def merged(one: SizeCounts, other: SizeCounts) -> SizeCounts:
    """The counts of both together."""
    totals: Counter[tuple[tuple[str, int], ...]] = Counter()
    for each in (*one.counts, *other.counts):
        totals[tuple(sorted(each.sizes.items()))] += each.calls
    calls, shift = one.calls + other.calls, int(one.calls + other.calls >= LARGEST_TOTAL)
    ranked = sorted(totals.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST]
    counts = (SizeCount(dict(sizes), number >> shift) for sizes, number in ranked)
    return SizeCounts(calls >> shift, tuple(each for each in counts if each.calls))


def read_counts(path: Path) -> SizeCounts:
    """The counts in a file. Raises UsageError when it cannot be read, ArtifactError when it holds something else."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise unreadable(error, str(path), WRITER) from error
    except ValueError as error:
        raise UsageError("this is no file of counted sizes", str(path), WRITER) from error
    return decode(SizeCounts, data, str(path))


def known_counts(path: Path) -> SizeCounts:
    """The counts in a file of the cache; none where it is not there or damaged."""
    try:
        return read_counts(path)
    except TilecError:
        return SizeCounts()


def counts_text(counts: SizeCounts) -> str:
    """The counts as they are written."""
    return pretty(encode(counts))


def calls_text(counts: SizeCounts) -> str:
    """`120 calls, 80 of them batch=1, seq=128`."""
    head = f"{counts.calls} {'call' if counts.calls == 1 else 'calls'}"
    if not counts.counts:
        return head
    most = counts.counts[0]
    from tilec.ir.sizes import sizes_text

    return f"{head}, {most.calls} of them {sizes_text(most.sizes)}"
