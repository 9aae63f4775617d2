"""Delta debugging of a model: nodes are removed as long as the rest still fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import pairwise

import numpy as np

from tilec.verify.inputs import Array
from tilec.verify.submodels import Choice, Part, Whole, changed, weights_of

Fails = Callable[[Part], bool]
"""Whether a part fails as the whole does."""


def shrink(whole: Whole, choice: Choice, fails: Fails) -> Choice:
    """The smallest failing choice found within a failing one: no node and no kept tensor of it can be removed.

    Sequences of nodes are removed, half of them first and single ones last (Zeller's delta debugging); their results
    become inputs.
    """

    @cache
    def failing(smaller: Choice) -> bool:
        part = whole.part(smaller) if smaller.nodes else None
        return part is not None and fails(part)

    choice = _fewer(whole, choice, failing, _half(len(choice.nodes)))
    for name in sorted(choice.kept):
        smaller = Choice(choice.nodes, choice.kept - {name})
        if failing(smaller):
            choice = smaller
    return _fewer(whole, choice, failing, 1)


def _fewer(whole: Whole, choice: Choice, fails: Callable[[Choice], bool], length: int) -> Choice:
    """The choice without sequences of nodes, of `length` at first, then shorter and shorter."""
    while True:
        smaller = next((each for each in _with_sequence_removed(whole, choice, length) if fails(each)), None)
        if smaller is not None:
            choice = smaller
            length = min(length, _half(len(choice.nodes)))
        elif length == 1:
            return choice
        else:
            length = _half(length)


def _half(count: int) -> int:
    """Half of a count, rounded up so that two halves make the whole; at least 1."""
    return max(1, -(-count // 2))


def _with_sequence_removed(whole: Whole, choice: Choice, length: int) -> Iterator[Choice]:
    """The choice without each sequence of `length` nodes; the ends first, for they leave the rest in one piece."""
    starts = list(range(0, len(choice.nodes), length))
    for at in dict.fromkeys((starts[-1], *starts)) if starts else ():
        dropped = choice.nodes[at : at + length]
        if len(dropped) < len(choice.nodes):
            yield whole.without(choice, set(dropped))


def simplify(part: Part, fails: Fails) -> Part:
    """A failing part with smaller sizes and simpler contents, as far as it still fails.

    A size is halved wherever it occurs, also in tensors that hold shapes; then each tensor becomes zeros or ones.
    """
    for size in sorted(_sizes(part), reverse=True):
        for larger, smaller in pairwise(_halvings(size)):
            candidate = _resized(part, larger, smaller)
            if not fails(candidate):
                break
            part = candidate
    for name, array in _arrays(part).items():
        if array.dtype.kind in "fV" and array.size > 1:
            for value in (0.0, 1.0):
                candidate = changed(part, {name: np.full_like(array, value)})
                if fails(candidate):
                    part = candidate
                    break
    return part


def _arrays(part: Part) -> Mapping[str, Array]:
    """All inputs and weights of a part."""
    return {**part.feeds, **weights_of(part)}


def _sizes(part: Part) -> set[int]:
    return {extent for array in _arrays(part).values() if not _is_shape(array) for extent in array.shape if extent > 1}


def _is_shape(array: Array) -> bool:
    """Whether an array may be a shape: then its elements are sizes, and its own size is a rank."""
    return array.dtype == np.int64 and array.ndim == 1


def _halvings(size: int) -> Iterator[int]:
    """The size, half of it, a quarter, down to 1."""
    while size > 1:
        yield size
        size //= 2
    yield size


def _resized(part: Part, size: int, smaller: int) -> Part:
    """The part with one size made smaller in every dimension and every shape tensor that has it."""
    arrays: dict[str, Array] = {}
    for name, array in _arrays(part).items():
        if _is_shape(array):
            arrays[name] = np.where(array == size, np.int64(smaller), array)
        elif size in array.shape:
            array = array[tuple(slice(smaller) if extent == size else slice(None) for extent in array.shape)]
            arrays[name] = np.ascontiguousarray(array)
    return changed(part, arrays)
