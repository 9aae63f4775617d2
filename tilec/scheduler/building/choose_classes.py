"""Which classes of sizes get a variant of their own, and the guards by which one is chosen at run time (B09).

A tile needs extents as large as itself: that is the least its guard says. Where another tile is better at some sizes
that fulfil it, the guard is narrowed by a limit between sizes that were looked at: many rows or few, long or short ones
(row and column reductions as one unit or several, B11 and B12).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from math import inf, isqrt, log, nextafter

import numpy as np
from numpy.typing import NDArray

from tilec.ir.evaluate import integer
from tilec.ir.expr import Binary, Const, Expr, Var

GAIN = 0.97
"""A further variant pays where it takes no more than this fraction of the time without it, at some likely size."""

SINGLE_GAIN = 0.9
"""So it does where one symbol is at its least and the others are as usual: one item of a batch, one more token."""

LIMIT_GAIN = 0.9
"""So do limits in guards: predictions of one tile against another, where both are legal, are less sure. They pay no
sooner than further variants do."""

CALL = 1e-6
"""Seconds of a call besides: what a limit gains of less than that is not seen."""

NARROWED = 2
"""Guards are narrowed of the first variants, up to this number."""


@dataclass(frozen=True)
class TimedClass:
    """A class of sizes: its least guard, the predicted seconds of its tile at every size that is looked at, and whether
    its tile may serve all sizes."""

    guard: Expr
    seconds: Sequence[float]
    serves_all: bool


@dataclass(frozen=True)
class Choice:
    """A class by its number, with the guard of its variant; `last` says that it is the variant for all sizes."""

    number: int
    guard: Expr
    last: bool = False


@dataclass(frozen=True)
class VariantPrices:
    """What decides how many variants pay: a group has at most `most`; one for all sizes takes `narrower` times its
    class's seconds; at the n-th of the sizes that are looked at a further one pays where it takes no more than the
    fraction `gains[n]` of the time without it, `rare` where nobody names the size."""

    most: int
    narrower: float
    rare: float
    gains: Sequence[float]

    @property
    def weights(self) -> NDArray[np.float64]:
        """The powers of losses by which a gain that pays counts the same at all sizes."""
        weights: NDArray[np.float64] = log(self.rare) / np.log(np.array(self.gains))
        return weights


def choose_classes(
    classes: Sequence[TimedClass], sizes: Sequence[Mapping[str, int]], prices: VariantPrices
) -> tuple[Choice, ...]:
    """Of the classes the fewest by which no size that was looked at loses much against the best of them, likely ones
    least; the last is for all sizes, unless the guard of one says so already."""
    order = sorted(range(len(classes)), key=lambda n: -_strength(classes[n].guard))
    plain = [Choice(n, classes[n].guard) for n in order]
    lasts = [n for n in order if classes[n].serves_all] or order
    table = _Losses(classes, sizes, lasts, prices)
    found = table.best(plain, 0)
    assert found is not None, "a variant for all sizes is there"
    for count in range(1, min(prices.most, 1 + len(classes))):
        found = table.best(plain, count, prices.rare * found[0]) or found
    _, chosen, last = _narrowed(found, plain, classes, sizes, lasts, prices)
    whole = next((k for k, each in enumerate(chosen) if each.guard == Const(True)), None)
    if whole is not None:
        return chosen[: whole + 1]
    if prices.narrower == 1:
        chosen = _without(last, chosen)
    return (*chosen, Choice(last, Const(True), last=True))


def _without(last: int, chosen: Sequence[Choice]) -> tuple[Choice, ...]:
    """The choices without those of the class of the variant for all sizes, which is the same code where narrower tiles
    cost nothing: the guards of those that come after one say that its own does not hold, where that takes one limit."""
    kept: list[Choice] = []
    for place, choice in enumerate(chosen):
        if choice.number == last:
            rest = [_outside(each, choice.guard) for each in chosen[place + 1 :]]
            if None not in rest:
                return (*kept, *_without(last, [each for each in rest if each is not None]))
        kept.append(choice)
    return tuple(kept)


def _outside(choice: Choice, guard: Expr) -> Choice | None:
    """A choice for where a guard does not hold; None where that takes more than one limit."""
    open_parts = [
        part for part in _conjuncts(guard) if not any(_follows(part, own) for own in _conjuncts(choice.guard))
    ]
    match open_parts:
        case [Binary(op, left, right)] if op in _OPPOSITE:
            return replace(choice, guard=_both(choice.guard, Binary(_OPPOSITE[op], left, right)))
    return None


_OPPOSITE = {"<": ">=", ">=": "<"}


_Found = tuple[float, tuple[Choice, ...], int]


def _narrowed(
    found: _Found,
    plain: Sequence[Choice],
    classes: Sequence[TimedClass],
    sizes: Sequence[Mapping[str, int]],
    lasts: Sequence[int],
    prices: VariantPrices,
) -> _Found:
    """The variants with guards that have limits where those pay, else the same ones; they are no more where further
    ones are dear."""
    _, chosen, last = found
    same = _Losses(classes, sizes, [last], prices, CALL).best(chosen, len(chosen))
    assert same is not None, "these variants serve all sizes"
    found = same
    limited = [replace(each, guard=_both(each.guard, limit)) for each in plain for limit in _limits(sizes)]
    table = _Losses(classes, sizes, lasts, prices, CALL)
    gain = min(LIMIT_GAIN, prices.rare)
    more = NARROWED if prices.rare == GAIN else min(NARROWED, len(chosen))
    for count in range(1, min(prices.most, 1 + more, len(classes))):
        if gain * found[0] > 1:
            found = table.best([*limited, *plain], count, gain * found[0]) or found
    return found


class _Losses:
    """The most that any size loses by some variants and one for all sizes, against the best class there, as much as it
    counts."""

    def __init__(
        self,
        classes: Sequence[TimedClass],
        sizes: Sequence[Mapping[str, int]],
        lasts: Sequence[int],
        prices: VariantPrices,
        besides: float = 0,
    ) -> None:
        seconds = np.array([each.seconds for each in classes], np.float64) + besides
        weights = prices.weights
        self.sizes = sizes
        self.lasts = lasts
        least = seconds.min(axis=0)
        # Where there is nothing to compute none loses, nor at an extent below nothing.
        loss: NDArray[np.float64] = np.divide(seconds, least, out=np.ones_like(seconds), where=least > 0)
        self.loss: NDArray[np.float64] = loss**weights
        self.rest: NDArray[np.float64] = prices.narrower**weights * self.loss[list(lasts)]

    def best(self, choices: Sequence[Choice], count: int, below: float = inf) -> _Found | None:
        """The `count` choices, in their order, and the last class of the least loss; of equal ones those of the first
        classes. None where each loses as much as `below` or more."""
        loss = self.loss[[each.number for each in choices]]
        search = _Search(loss, self._holds(choices), self.rest, nextafter(below, 0) if below < inf else inf)
        search.extend((), np.ones(len(self.sizes), bool), 0.0, count)
        if not search.equal:
            return None
        equal = [(tuple(choices[n] for n in places), self.lasts[last]) for places, last in search.equal]
        chosen, last = min(equal, key=lambda each: (tuple(choice.number for choice in each[0]), each[1]))
        return search.least, chosen, last

    def _holds(self, choices: Sequence[Choice]) -> NDArray[np.bool_]:
        """At which sizes the guard of each choice holds; choices share parts of their guards."""
        parts = {part for each in choices for part in _conjuncts(each.guard)}
        known = {part: np.array([bool(integer(part, at)) for at in self.sizes]) for part in parts}
        rows = [reduce(np.logical_and, (known[part] for part in _conjuncts(each.guard))) for each in choices]
        return np.array(rows).reshape(len(choices), len(self.sizes))


class _Search:
    """The selections of choices and the last class, by their numbers, that lose the `least`: those found so far, none
    of which loses more than was asked for."""

    def __init__(
        self, loss: NDArray[np.float64], holds: NDArray[np.bool_], rest: NDArray[np.float64], most: float
    ) -> None:
        self.loss, self.holds, self.rest = loss, holds, rest
        self.least = most
        self.equal: list[tuple[tuple[int, ...], int]] = []

    def extend(self, chosen: tuple[int, ...], left: NDArray[np.bool_], worst: float, count: int) -> None:
        """Find `count` more choices behind those `chosen`, which lose `worst` and leave the sizes `left` to others."""
        if not count:
            self._note([chosen], left[None], np.array([worst]))
            return
        first = chosen[-1] + 1 if chosen else 0
        losses = np.max(self.loss[first:], axis=-1, where=self.holds[first:] & left, initial=worst)
        if count == 1:
            (behind,) = np.nonzero(losses <= self.least)
            self._note([(*chosen, first + int(n)) for n in behind], left & ~self.holds[first:][behind], losses[behind])
            return
        for n, own in enumerate(losses, first):
            if own <= self.least:
                self.extend((*chosen, n), left & ~self.holds[n], float(own), count - 1)

    def _note(self, places: Sequence[tuple[int, ...]], left: NDArray[np.bool_], losses: NDArray[np.float64]) -> None:
        """Keep those whose losses, with the last class at what is left, are the least."""
        if not places:
            return
        rest = np.max(np.broadcast_to(self.rest, (len(left), *self.rest.shape)), -1, where=left[:, None], initial=0.0)
        total = np.maximum(losses[:, None], rest)
        least = float(total.min())
        if least < self.least:
            self.least, self.equal = least, []
        self.equal += [(places[at], int(last)) for at, last in np.argwhere(total == self.least)]


def _limits(sizes: Sequence[Mapping[str, int]]) -> list[Binary]:
    """Limits of single symbols between the sizes that were looked at."""
    limits: list[Binary] = []
    for symbol in sizes[0]:
        for small, large in pairwise(sorted({at[symbol] for at in sizes})):
            middle = Const(isqrt(small * large) + 1)
            limits += [Binary(">=", Var(symbol), middle), Binary("<", Var(symbol), middle)]
    return limits


def _both(guard: Expr, limit: Binary) -> Expr:
    """A guard and a limit, without what the limit says already."""
    parts = [part for part in _conjuncts(guard) if part != Const(True) and not _follows(part, limit)]
    return reduce(lambda a, b: Binary("and", a, b), [*parts, limit])


def _follows(part: Expr, limit: Expr) -> bool:
    """Whether a limit says what a part of a guard does."""
    match part, limit:
        case Binary(">=", left, Const(int() as least)), Binary(">=", same, Const(int() as more)):
            return left == same and least <= more
    return False


def _strength(guard: Expr) -> float:
    """How large sizes must be for a variant: the logarithm of the product of what its guard asks of extents."""
    limits = (part.right for part in _conjuncts(guard) if isinstance(part, Binary))
    return sum((log(limit.value) for limit in limits if isinstance(limit, Const)), start=0.0)


def _conjuncts(guard: Expr) -> list[Expr]:
    if isinstance(guard, Binary) and guard.op == "and":
        return [*_conjuncts(guard.left), *_conjuncts(guard.right)]
    return [guard]
