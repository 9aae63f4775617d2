"""Symmetries of an Einsum: interchangeable iterators, whose mirrored tilings have equal buffer and traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations

from tilec.bounds.einsum.einsum import Einsum, Operand

Swaps = Mapping[str, str]

_MAX_PAIRS = 3
"""Maximal number of pairs exchanged at once: height and width, with their windows."""


def mirrored_pair(einsum: Einsum) -> tuple[str, str] | None:
    """Two iterators of equal extent that can be exchanged, alone or together with other pairs, without changing the
    accesses; None if there are none.

    Of every tiling and its mirror image only one has to be evaluated, say the one whose first iterator has the smaller
    tile. Guards do not count: tiles include the elements they exclude.
    """
    whole = _content(einsum, {})
    for swaps in _exchanges(einsum.dims, einsum.extents):
        if _content(einsum, swaps) == whole:
            first = next(dim for dim in einsum.dims if dim in swaps)
            return first, swaps[first]
    return None


def _exchanges(dims: tuple[str, ...], extents: Mapping[str, int]) -> Iterator[Swaps]:
    """Up to `_MAX_PAIRS` disjoint pairs of iterators of equal extent and more than one iteration, fewest first."""
    pairs = [pair for pair in combinations(dims, 2) if extents[pair[0]] == extents[pair[1]] > 1]
    for number in range(1, _MAX_PAIRS + 1):
        for chosen in combinations(pairs, number):
            if len({dim for pair in chosen for dim in pair}) == 2 * number:
                yield {a: b for one, other in chosen for a, b in ((one, other), (other, one))}


def _content(einsum: Einsum, swaps: Swaps) -> tuple[object, ...]:
    """Inputs and output with iterators exchanged, independent of the order of inputs and of indices."""
    return Counter(_indices(operand, swaps) for operand in einsum.inputs), _indices(einsum.output, swaps)


def _indices(operand: Operand, swaps: Swaps) -> tuple[object, ...]:
    ranks = (frozenset((swaps.get(dim, dim), factor) for dim, factor in rank) for rank in operand.ranks)
    return operand.bits, frozenset(Counter(ranks).items())
