"""Decisions about symbolic sizes during import: what is known, and what a node may assume (B06, B07)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tilec.importer.formula import formula
from tilec.importer.names import Names
from tilec.importer.ratio import EXACT, Ratio
from tilec.importer.shapes import ShapeError, UndecidedError, symbols_of
from tilec.ir.algebra import bounds_of, equal
from tilec.ir.evaluate import integer
from tilec.ir.expr import Binary, Call, Const, Expr, Var, constant_value
from tilec.ir.size_facts import ContradictionError, SizeFacts, assumed, decided, same, with_range
from tilec.ir.sizes import ANY_SIZE, DEFAULT_SIZE, SymbolRange
from tilec.ir.text import text_of

SMALL = tuple(range(18))
"""Sizes at which extents are looked at: what is negative anywhere is so at small ones."""

MOST_TRIED = 4096
"""Sizes of several symbols that are looked at together."""

LARGE = 8
"""How many times the usual size a size without a limit is taken for where a decision has to pay at large sizes."""


class AssumedSizes:
    """The facts that translation has collected; inside of `conditional` nothing may be assumed, inside of `defining`
    stand the nodes by which ONNX defines an operator."""

    def __init__(self, facts: SizeFacts, names: Names) -> None:
        self.facts = facts
        self.names = names
        self.fixed = False
        self.defines = False

    @contextmanager
    def conditional(self) -> Iterator[None]:
        """Translate what may not be computed in a run: it demands nothing of sizes."""
        before, self.fixed = self.fixed, True
        try:
            yield
        finally:
            self.fixed = before

    @contextmanager
    def defining(self, defines: bool) -> Iterator[None]:
        """Translate the nodes of a function: those that define an operator mean an extent of 0 as they compute it."""
        before, self.defines = self.defines, defines
        try:
            yield
        finally:
            self.defines = before


class NodeSizes:
    """What the translation of one node knows of sizes; `origin` names the node."""

    def __init__(self, known: AssumedSizes, origin: str) -> None:
        self._known = known
        self._origin = origin

    def report(self, wanted: str, limit: Expr | None) -> Expr:
        """A fresh symbol for a size that is at most `limit`, named `wanted` and a number."""
        facts = self._known.facts
        name = self._known.names.numbered(wanted)
        facts = replace(facts, reported=(*facts.reported, name))
        high = None if limit is None else constant_value(limit)
        entry = SymbolRange(0, None if high is None else int(high), origin=self._origin)
        self._known.facts = replace(facts, ranges={**facts.ranges, name: entry})
        if limit is not None and high is None:
            self.assume(Binary("<=", Var(name), limit), "more than there are")
        return Var(name)

    def same(self, a: Expr, b: Expr) -> bool | None:
        """Whether two extents are equal for all sizes (True), for none (False), or for some (None)."""
        return same(self._known.facts, a, b)

    def decided(self, condition: Expr) -> bool | None:
        """Whether a condition holds for all sizes (True), for none (False), or for some (None)."""
        return decided(self._known.facts, condition)

    def is_given(self, symbol: str) -> bool:
        """Whether a symbol is a size that inputs have on their own, which no call reports."""
        return symbol in self._known.facts.solvable

    def assume(self, condition: Expr, message: str) -> None:
        """Go on as if a condition holds; sizes that break it are refused. Raises ShapeError with the message where none
        fulfil it, UndecidedError where nothing may be assumed."""
        if self._known.fixed:
            if self.decided(condition) is not True:
                raise UndecidedError(f"{message}: whether {text_of(condition)} depends on the sizes", _names(condition))
            return
        try:
            self._known.facts = assumed(self._known.facts, condition, self._origin)
        except ContradictionError as error:
            raise ShapeError(f"{message}: {error}") from error

    def demand(self, condition: Expr, message: str) -> None:
        """Record a condition that every valid run fulfils; one that may not compute the node need not. Raises
        ShapeError with the message where no sizes fulfil it."""
        if not self._known.fixed:
            self.assume(condition, message)

    def expect(self, extent: Expr, usual: int) -> None:
        """Record the usual size of an extent of which nothing more is known."""
        facts = self._known.facts
        extent = facts.reduced(extent)
        if isinstance(extent, Var) and not facts.ranges.get(extent.name, ANY_SIZE).likely:
            self._known.facts = with_range(facts, extent.name, SymbolRange(likely=(usual,), origin=self._origin))

    def counted(self, *ratios: Ratio) -> None:
        """Demand that floats count exactly what ratios are made of."""
        for limit in dict.fromkeys(limit for ratio in ratios for limit in ratio.limits):
            below = formula("n // most == 0", n=limit, most=EXACT)
            self.demand(below, f"{text_of(limit)} is counted in floats")

    def may_be_negative(self, extent: Expr) -> bool:
        """Whether an extent is negative at some small sizes that nothing excludes."""
        low = bounds_of(extent)[0]
        if low is not None and low >= 0:
            return False
        (values,) = self._at_small_sizes(extent)
        return bool((values < 0).any())

    def require_elements(self, extent: Expr, reached: Sequence[Expr], message: str) -> None:
        """Demand that an extent is not 0 where all of `reached`, extents of what looks into it, are 1 or more."""
        low = bounds_of(extent)[0]
        if (low is not None and low >= 1) or any(equal(extent, each) for each in reached):
            return
        reached = tuple(dict.fromkeys(each for each in reached if (bounds_of(each)[0] or 0) < 1))
        values, *others = self._at_small_sizes(extent, *reached)
        if np.logical_and.reduce([values == 0, *(n >= 1 for n in others)]).any():
            least: Expr = Const(1)
            for each in reached:
                least = Call("minimum", (each, least))
            self.demand(Binary("<=", least, extent), message)

    def replaces(self, extent: Expr, copied: Expr) -> None:
        """Demand that a computed extent of 0, for which Reshape copies another one, copies 0."""
        if not self._known.defines:
            self.require_elements(extent, (copied,), f"an extent of 0 copies {text_of(copied)}")

    def _at_small_sizes(self, *extents: Expr) -> list[NDArray[np.int64]]:
        """The values of extents at small sizes that nothing excludes: fewer sizes of each symbol where there are more
        symbols, one of those that are too many."""
        facts = self._known.facts
        reduced = [facts.reduced(extent) for extent in extents]
        symbols = list(dict.fromkeys(symbol for extent in reduced for symbol in symbols_of((extent,))))
        side = max(2, int(MOST_TRIED ** (1 / max(1, len(symbols)))))
        small = []
        for place, symbol in enumerate(symbols):
            entry = facts.ranges.get(symbol, ANY_SIZE)
            sizes = [size for size in SMALL if entry.holds(size)] or [entry.least]
            small.append(sizes[:side] if 2**place < MOST_TRIED else [max(sizes[:2])])
        grid = np.meshgrid(*small, indexing="ij") if small else [np.zeros(1, np.int64)]
        at = {symbol: sizes.ravel() for symbol, sizes in zip(symbols, grid, strict=False)}
        known = [each.holds for each in facts.constraints if set(symbols_of((each.holds,))) <= set(symbols)]
        legal = np.ones(grid[0].size, bool)
        with np.errstate(divide="ignore"):
            for holds in known:
                legal &= np.asarray(integer(holds, at)) != 0
            return [np.broadcast_to(integer(extent, at), legal.shape)[legal] for extent in reduced]

    def large(self, expr: Expr) -> int:
        """The value of an expression at large sizes: the largest of every range, a multiple of the usual one else."""
        ranges = self._known.facts.ranges
        reduced = self._known.facts.reduced(expr)
        most = {symbol: ranges.get(symbol, ANY_SIZE).most for symbol in symbols_of((reduced,))}
        return int(integer(reduced, {s: LARGE * DEFAULT_SIZE if size is None else size for s, size in most.items()}))


def _names(condition: Expr) -> Sequence[str]:
    return symbols_of((condition.left, condition.right)) if isinstance(condition, Binary) else ()
