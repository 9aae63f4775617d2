"""The smallest part of a model that fails: nodes are left out as long as the rest still fails."""

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
    """The smallest choice within a failing one that is found: no node and no kept tensor of it can be left out.

    Runs of nodes are left out, half of them first and single ones last (Zeller's delta debugging); what they made
    becomes an input.
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
    """The choice without runs of nodes, of `length` at first and then shorter and shorter."""
    while True:
        found = next((each for each in _runs_left_out(whole, choice, length) if fails(each)), None)
        if found is not None:
            choice = found
            length = min(length, _half(len(choice.nodes)))
        elif length == 1:
            return choice
        else:
            length = _half(length)


def _half(count: int) -> int:
    """Half of a count, rounded up so that two runs make the whole; at least 1."""
    return max(1, -(-count // 2))


def _runs_left_out(whole: Whole, choice: Choice, length: int) -> Iterator[Choice]:
    """The choice without each run of so many nodes; the ends first, which leave the rest in one piece."""
    starts = list(range(0, len(choice.nodes), length))
    for at in dict.fromkeys((starts[-1], *starts)) if starts else ():
        dropped = choice.nodes[at : at + length]
        if len(dropped) < len(choice.nodes):
            yield whole.without(choice, set(dropped))


def simplify(part: Part, fails: Fails) -> Part:
    """A failing part with smaller sizes and plainer contents, as far as it still fails.

    A size is halved wherever it occurs, in numbers that are shapes too; then each tensor becomes zeros or ones.
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
    """Everything that is given to the nodes of a part."""
    return {**part.feeds, **weights_of(part)}


def _sizes(part: Part) -> set[int]:
    return {extent for array in _arrays(part).values() if not _is_shape(array) for extent in array.shape if extent > 1}


def _is_shape(array: Array) -> bool:
    """Whether an array may be a shape: its elements are sizes then, its own size is a rank."""
    return array.dtype == np.int64 and array.ndim == 1


def _halvings(size: int) -> Iterator[int]:
    """The size, half of it, a quarter, down to 1."""
    while size > 1:
        yield size
        size //= 2
    yield size


def _resized(part: Part, size: int, smaller: int) -> Part:
    """The part with one size made smaller wherever a dimension has it, and wherever a shape that is given says it."""
    arrays: dict[str, Array] = {}
    for name, array in _arrays(part).items():
        if _is_shape(array):
            arrays[name] = np.where(array == size, np.int64(smaller), array)
        elif size in array.shape:
            array = array[tuple(slice(smaller) if extent == size else slice(None) for extent in array.shape)]
            arrays[name] = np.ascontiguousarray(array)
    return changed(part, arrays)
