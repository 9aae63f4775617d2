"""Lanes: units that run the iterations of spread loops side by side, in lockstep.

A lane is one position of all spread loops around a statement. A buffer at a level is private to the lanes of that
level's scope and lower ones and shared by the others: a statement at a level runs once for all lanes that differ only
in the scopes of higher levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilec.ir.evaluate import MAX_ELEMENTS, integer
from tilec.ir.expr import Expr
from tilec.ir.numpy_scalars import Array

Loops = tuple[tuple[str, int, int], ...]
"""Spread loops, outermost first: variable, position of the level of its units, a number above all its values."""


class Lanes:
    """Many lanes at once: for every spread variable, outermost first, its value in each lane ([count], int64), the
    position of the level whose units the loop runs on, and a number above all its values."""

    def __init__(self, count: int = 1, loops: Loops = (), table: Array | None = None) -> None:
        self.count = count
        self._loops = loops
        self._table = np.zeros((0, count), np.int64) if table is None else table
        self._instances: dict[int, Lanes] = {}

    @property
    def values(self) -> dict[str, Array]:
        """Spread variable -> its value in each lane."""
        return {name: column for (name, _, _), column in zip(self._loops, self._table, strict=True)}

    def spread(self, variable: str, counts: Array, scope: int) -> Lanes:
        """The lanes inside a spread loop that has `counts` iterations in each of these lanes."""
        total = int(counts.sum())
        inner = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        loops = (*self._loops, (variable, scope, int(counts.max(initial=0))))
        return Lanes(total, loops, np.vstack([np.repeat(self._table, counts, axis=1), inner]))

    def chosen(self, which: Array) -> Lanes:
        """The lanes at these positions, in this order."""
        table = self._table[:, which]
        return Lanes(table.shape[1], self._loops, table)

    def names(self, level: int) -> tuple[str, ...]:
        """The variables that distinguish the instances of a level."""
        return tuple(name for name, scope, _ in self._loops if scope <= level)

    def codes(self, level: int) -> Array:
        """A number for each lane that identifies its instance of a level."""
        code = np.zeros(self.count, np.int64)
        for (_, scope, most), column in zip(self._loops, self._table, strict=True):
            if scope <= level:
                code = code * most + column
        return code

    def instances(self, level: int) -> Lanes:
        """The distinct instances of a level behind these lanes, as lanes without the variables of higher levels."""
        if level not in self._instances:
            self._instances[level] = self._distinct(level)
        return self._instances[level]

    def _distinct(self, level: int) -> Lanes:
        lower = [position for position, (_, scope, _) in enumerate(self._loops) if scope <= level]
        if len(lower) == len(self._loops):
            return self
        first = np.unique(self.codes(level), return_index=True)[1]
        return Lanes(len(first), tuple(self._loops[p] for p in lower), self._table[lower][:, first])


def alike(table: Array) -> Iterator[Array]:
    """Groups of positions of equal rows of an integer table [n, columns]."""
    if not len(table):
        return
    if (table == table[0]).all():
        yield np.arange(len(table))
        return
    low = table.min(axis=0)
    code = np.zeros(len(table), np.int64)
    for column, span in zip((table - low).T, table.max(axis=0) - low + 1, strict=True):
        code = code * span + column
    order = np.argsort(code, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(code[order])) + 1)


def pieces(widths: Array, rank: int | None = None) -> Iterator[Array]:
    """Groups of lanes whose regions ([lanes, dimensions]) have equal widths, each group of about `MAX_ELEMENTS`
    elements at most; lanes that are empty in the first `rank` dimensions are left out."""
    widths = np.maximum(widths, 0)
    used = np.flatnonzero(widths[:, :rank].prod(axis=1))
    for same in alike(widths[used]):
        some = used[same]
        most = max(1, MAX_ELEMENTS // max(1, int(widths[some[0]].prod())))
        for begin in range(0, len(some), most):
            yield some[begin : begin + most]


def integers(exprs: Sequence[Expr], values: Mapping[str, Any], lanes: int) -> Array:
    """Values of integer expressions in every lane: [lanes, expressions]. Raises KeyError for an unbound variable."""
    columns = [np.broadcast_to(np.asarray(integer(expr, values), np.int64), lanes) for expr in exprs]
    return np.stack(columns, axis=1) if columns else np.zeros((lanes, 0), np.int64)


def volumes(widths: Array) -> Array:
    """Number of elements of regions [n, rank]; a region that ends before it begins is empty."""
    return np.asarray(np.maximum(widths, 0).prod(axis=1))


def region_text(lo: Array, hi: Array) -> str:
    """A region as text for messages."""
    return str(list(zip(lo.tolist(), hi.tolist(), strict=True)))
