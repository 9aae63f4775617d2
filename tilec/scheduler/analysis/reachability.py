"""Reachability between parts of a graph, kept up to date while parts are added and joined.

It answers whether joining two parts would close a cycle (Apollo, aggregating primitive operators).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Reachability:
    """For every part: the parts that read it, and a bit set of all parts that it needs, directly or not.

    Parts that read each other count as one: whoever needs one of them needs all of them and everything they need.
    """

    above: list[set[int]] = field(default_factory=list)
    needs: list[int] = field(default_factory=list)

    def add(self) -> None:
        """Add a part that reads nothing yet."""
        self.above.append(set())
        self.needs.append(0)

    def leads(self, first: int, second: int) -> bool:
        """Whether the second part depends on the first."""
        return bool(self.needs[second] >> first & 1)

    def read(self, part: int, producers: Iterable[int]) -> None:
        """Record that the part reads `producers`; everything that depends on the part then depends on them."""
        new = 0
        for producer in producers:
            self.above[producer].add(part)
            new |= self.needs[producer] | 1 << producer
        waiting = [part]
        while waiting:
            current = waiting.pop()
            if new & ~self.needs[current]:
                self.needs[current] |= new
                waiting += self.above[current]
