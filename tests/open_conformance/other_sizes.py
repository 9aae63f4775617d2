"""Sizes that a case is run at beside its own: 1, 0, odd and larger ones, as far as its operator allows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from tests.open_conformance.opened import Sizes

ATTEMPTS = 60
"""Proposals of a kind that are tried."""

Change = Callable[[int], int]

KINDS: tuple[tuple[str, tuple[Change, ...]], ...] = (
    ("one", (lambda _: 1,)),
    ("zero", (lambda _: 0,)),
    ("odd", (lambda n: 2 * n + 1, lambda n: 3 * n, lambda n: n + 2)),
    ("larger", (lambda n: 4 * n, lambda n: 5 * n + 3)),
)
"""Kind of size -> what a size of the case becomes."""


def proposals(kind: Sequence[Change], sizes: Sizes, legal: Callable[[Sizes], bool]) -> Iterator[Sizes]:
    """Sizes of a kind, the most changed first.

    Sizes that are equal in the case change together; one alone only where the operator lets it vary, so that no
    operand becomes one that is repeated.
    """
    numbers = sorted(set(sizes.values()), reverse=True)
    left = ATTEMPTS
    for count in range(len(numbers), 0, -1):
        for chosen in combinations(numbers, count):
            for change in kind:
                yield {symbol: change(size) if size in chosen else size for symbol, size in sizes.items()}
                left -= 1
                if not left:
                    return
    for symbol, size in sizes.items():
        if legal({**sizes, symbol: size + 2}):
            for change in kind:
                yield {**sizes, symbol: change(size)}


def other_sizes(sizes: Sizes, legal: Callable[[Sizes], bool]) -> list[Sizes]:
    """The first legal sizes of every kind that has some."""
    found: list[Sizes] = []
    for _, kind in KINDS:
        new = (each for each in proposals(kind, sizes, legal) if each != sizes and each not in found)
        first = next((each for each in new if legal(each)), None)
        if first is not None:
            found.append(first)
    return found
