"""Which of many parts depend on which, asked while parts are added and joined (A07)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Reachability:
    """For every part the parts that read it, and as the bits of a number all that it needs, directly or not.

    Parts that read each other are one: whoever needs one of them needs all of them, and what they need.
    """

    above: list[set[int]] = field(default_factory=list)
    needs: list[int] = field(default_factory=list)

    def add(self) -> None:
        """One part more, which reads nothing yet."""
        self.above.append(set())
        self.needs.append(0)

    def leads(self, first: int, second: int) -> bool:
        """Whether the second part depends on the first."""
        return bool(self.needs[second] >> first & 1)

    def read(self, part: int, producers: Iterable[int]) -> None:
        """The part reads `producers`, and so does all that depends on it."""
        new = 0
        for producer in producers:
            self.above[producer].add(part)
            new |= self.needs[producer] | 1 << producer
        waiting = [part]
        while waiting:
            here = waiting.pop()
            if new & ~self.needs[here]:
                self.needs[here] |= new
                waiting += self.above[here]
