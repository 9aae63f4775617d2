"""Sizes that a case is run at beside its own: 1, 0, odd and larger ones, and 1 for one alone that others are equal to,
as far as its operator allows them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations

from tests.open_conformance.opened import Sizes

ATTEMPTS = 40
"""Proposals of a kind that are tried."""

Change = Callable[[int], int]
Legal = Callable[[Sizes], bool]

GROWN: tuple[Change, ...] = (lambda n: 2 * n + 1, lambda n: 3 * n, lambda n: n + 2)
"""Ways in which a size grows."""

KINDS: tuple[tuple[str, tuple[Change, ...]], ...] = (
    ("one", (lambda _: 1,)),
    ("zero", (lambda _: 0,)),
    ("odd", GROWN),
    ("larger", (lambda n: 4 * n, lambda n: 5 * n + 3)),
)
"""Kind of size -> what a size of the case becomes."""


def proposals(kind: Sequence[Change], sizes: Sizes, legal: Legal) -> Iterator[Sizes]:
    """Sizes of a kind, the most changed first.

    Sizes that are equal in the case change together, or one alone; in both cases only those that the operator lets
    grow, so that no operand of extent 1 is repeated, and nothing is left unread because there is nothing.
    """
    numbers = sorted(set(sizes.values()), reverse=True)
    left = ATTEMPTS
    groups = [c for count in range(len(numbers), 0, -1) for c in combinations(numbers, count)]
    together = ({symbol for symbol, size in sizes.items() if size in chosen} for chosen in groups)
    for symbols in (*together, *({symbol} for symbol in sizes)):
        if not any(legal(_changed(sizes, symbols, grow)) for grow in GROWN):
            continue
        for change in kind:
            yield _changed(sizes, symbols, change)
            left -= 1
            if not left:
                return


def repeated(sizes: Sizes, legal: Legal) -> Sizes | None:
    """The case's sizes with a 1 where an operand is repeated: a size that cannot grow alone can be 1 alone."""
    for symbol, size in sizes.items():
        one = _changed(sizes, {symbol}, lambda _: 1)
        if size > 1 and legal(one) and not any(legal(_changed(sizes, {symbol}, grow)) for grow in GROWN):
            return one
    return None


def _changed(sizes: Sizes, symbols: Collection[str], change: Change) -> Sizes:
    return {symbol: change(size) if symbol in symbols else size for symbol, size in sizes.items()}


def other_sizes(sizes: Sizes, legal: Legal) -> list[Sizes]:
    """The first legal sizes of every kind that has some, and those with an operand that is repeated."""
    found: list[Sizes] = []
    for _, kind in KINDS:
        new = (each for each in proposals(kind, sizes, legal) if each != sizes and each not in found)
        first = next((each for each in new if legal(each)), None)
        if first is not None:
            found.append(first)
    one = repeated(sizes, legal)
    return found if one is None or one in found else [*found, one]
