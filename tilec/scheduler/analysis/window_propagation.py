"""follow: Propagate through one node for many candidates, its affine reads found once (W04).

Nearly all reads are sums of iterators times integers: their windows are a few additions on the ends of the box, moved
to where guards hold.  Everything else asks `tilec.ir.propagate`, one read at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tilec.ir.expr import ById, Expr, TensorExpr, Var, accesses, constant_value, variables
from tilec.ir.intervals import Candidates
from tilec.ir.propagate import read_window
from tilec.ir.reads import IteratorGuard, Read, linear, reads
from tilec.scheduler.analysis.access import is_data_dependent

Ints = NDArray[np.int64]
Ends = tuple[Ints | int, Ints | int]
"""`[lo, hi)`, plain integers where all candidates agree."""
Box = Mapping[str, Ends]
Floats = NDArray[np.float64]
Window = tuple[Ends, ...]
Shapes = Mapping[str, tuple[Expr, ...]]


ALL_TILES: Final = 1.0
"""The share of tiles that read what no guard keeps from any."""


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """What a node reads of a tensor in one tile: the window, not cut to the tensor, the share of tiles that read it,
    and the iterators whose guards keep it from the others."""

    window: Window
    share: Floats | float = ALL_TILES
    kept: frozenset[str] = frozenset()


def propagate_windows(expr: TensorExpr, box: Box, shapes: Shapes, numbers: Candidates) -> dict[str, ReadWindow]:
    """What a node reads for a box of its iterators, of every tensor as much as any tile of this size.

    A read that guards keep to a range of an iterator, like one input of a concatenation, is seen in a tile that lies in
    this range; other tiles do without, if the iterator moves what is read: else no window says that they could, and a
    row that is put behind others would be computed by every tile.
    """
    found: dict[str, ReadWindow] = {}
    for known in _known(ById(expr)):
        tile: Box = box
        share: Floats | float = ALL_TILES
        if known.guarded:
            extents = extents_of(expr, numbers)
            ranges = known.ranges or _ranges(known.read.iterator_guards, extents, numbers)
            tile, share = _moved(ranges, known.moving, box, extents)
        window = _window(known.read, known.forms, tile, shapes[known.read.tensor], numbers)
        if known.guarded:
            empty = _empty([tile[iterator] for iterator in known.guarded])
            if empty.any():
                window = tuple((np.where(empty, 0, first), np.where(empty, 0, end)) for first, end in window)
                share = np.where(empty, 0.0, share)
        need = ReadWindow(window, share, known.moving & known.guarded)
        other = found.get(known.read.tensor)
        found[known.read.tensor] = need if other is None else _both(other, need)
    return found


def _window(read: Read, forms: _Forms | None, box: Box, shape: Sequence[Expr], numbers: Candidates) -> Window:
    """What a read touches in a tile where its guards hold."""
    if forms is not None:
        return tuple(
            _ends(form, box) if form is not None else (0, extent_of(extent, numbers))
            for form, extent in zip(forms, shape, strict=True)
        )
    closed = {i: (np.asarray(lo, np.int64), np.asarray(hi, np.int64) - 1) for i, (lo, hi) in box.items()}
    plain = Read(read.tensor, read.index, (), ())
    inclusive, _ = read_window(plain, closed, shape, numbers, clip=False)
    return tuple((first, last + 1) for first, last in inclusive)


def _empty(intervals: Sequence[Ends]) -> NDArray[np.bool_]:
    """Whether any interval is empty."""
    found: NDArray[np.bool_] = np.asarray(False)
    for lo, hi in intervals:
        found = found | np.asarray(hi <= lo)
    return found


def _both(one: ReadWindow, other: ReadWindow) -> ReadWindow:
    """Two reads of one tensor; one that reads nothing widens nothing."""
    if one.share is ALL_TILES and other.share is ALL_TILES:
        return ReadWindow(hull(one.window, other.window), ALL_TILES, one.kept | other.kept)
    left, right = volume(one.window) == 0, volume(other.window) == 0
    window = tuple(
        (np.where(left, other_lo, np.where(right, lo, both_lo)), np.where(left, other_hi, np.where(right, hi, both_hi)))
        for (lo, hi), (other_lo, other_hi), (both_lo, both_hi) in zip(
            one.window, other.window, hull(one.window, other.window), strict=True
        )
    )
    return ReadWindow(window, np.minimum(one.share + other.share, 1.0), one.kept | other.kept)


def _ranges(guards: Sequence[IteratorGuard], extents: Mapping[str, int], numbers: Candidates) -> _Ranges:
    """The first and last point of every guarded iterator where guards hold."""
    ranges: dict[str, tuple[Ints | int, Ints | int]] = {}
    for guard in guards:
        low, high = ranges.get(guard.iterator, (0, extents[guard.iterator] - 1))
        quotient = extent_of(guard.rest, numbers) // abs(guard.scale)
        ranges[guard.iterator] = (most(low, -quotient), high) if guard.scale > 0 else (low, least(high, quotient))
    return ranges


def _moved(ranges: _Ranges, moving: Set[str], box: Box, extents: Mapping[str, int]) -> tuple[Box, Floats | float]:
    """A box moved to where guards hold, and how much of all boxes like it they let through, as far as they are about
    iterators that move what is read."""
    moved = dict(box)
    share: Floats | float = ALL_TILES
    for iterator, (low, high) in ranges.items():
        lo, hi = box[iterator]
        size, inside = hi - lo, most(high - low + 1, 0)
        start = least(most(lo, low), most(low, high + 1 - size))
        moved[iterator] = (start, least(start + size, high + 1))
        if iterator in moving:
            covered = most(least(size, inside), 1)
            share = np.asarray(share * np.minimum(size * inside / (extents[iterator] * covered), 1.0))
    return moved, share


def extent_of(extent: Expr, numbers: Candidates) -> int:
    """An extent as a number: what is likely, where it is symbolic."""
    known = constant_value(extent)
    return int(numbers.size(extent)) if known is None else known


def extents_of(expr: TensorExpr, numbers: Candidates) -> Mapping[str, int]:
    """Iterator of a node -> its extent as a number."""
    known = _bound_extents(ById(expr))
    return {i: extent_of(e, numbers) for i, e in expr.domain.items()} if known is None else known


@lru_cache(maxsize=8192)
def _bound_extents(node: ById[TensorExpr]) -> Mapping[str, int] | None:
    """The extents of a node if none is symbolic."""
    found = {i: constant_value(e) for i, e in node.value.domain.items()}
    known = {i: n for i, n in found.items() if n is not None}
    return known if len(known) == len(found) else None


def least(a: Ints | int, b: Ints | int) -> Ints | int:
    """The smaller, candidate by candidate."""
    return min(a, b) if type(a) is int and type(b) is int else np.minimum(a, b)


def most(a: Ints | int, b: Ints | int) -> Ints | int:
    """The larger, candidate by candidate."""
    return max(a, b) if type(a) is int and type(b) is int else np.maximum(a, b)


def hull(window: Sequence[Ends], other: Sequence[Ends]) -> Window:
    """The smallest window around two."""
    return tuple(
        (a if a is c else least(a, c), b if b is d else most(b, d))
        for (a, b), (c, d) in zip(window, other, strict=True)
    )


def volume(intervals: Sequence[Ends]) -> Ints:
    """Elements of a box of intervals."""
    total: Ints | int = 1
    for lo, hi in intervals:
        total = total * most(width(lo, hi), 0)
    return np.asarray(total, np.int64)


def width(lo: Ints | int, hi: Ints | int) -> Ints | int:
    """Elements of an interval; most begin at a plain 0."""
    return hi if type(lo) is int and lo == 0 else hi - lo


@dataclass(frozen=True, slots=True)
class _Form:
    """A constant and iterators with their scales; `plain` is an iterator that is all of it."""

    constant: int
    terms: tuple[tuple[str, int], ...]
    plain: str | None = None


_Forms = tuple[_Form | None, ...]
"""The form of every index of a read (None: data-dependent)."""

_Ranges = Mapping[str, tuple[Ints | int, Ints | int]]
"""Iterator -> the first and last point where guards hold."""


@dataclass(frozen=True, slots=True)
class ReadIndex:
    """One read of a node: the tensor, the variables in the index of each dimension, whether data chooses it."""

    tensor: str
    variables: tuple[frozenset[str], ...]
    by_data: bool

    def moves(self, iterators: Set[str]) -> bool:
        """Whether any of some iterators moves what is read."""
        return any(names & iterators for names in self.variables)


def read_indices(expr: TensorExpr) -> tuple[ReadIndex, ...]:
    """The reads of a node, each with what moves it."""
    return _seats(ById(expr))


@lru_cache(maxsize=8192)
def _seats(node: ById[TensorExpr]) -> tuple[ReadIndex, ...]:
    return tuple(
        ReadIndex(a.tensor, tuple(variables(i) for i in a.index), is_data_dependent(a)) for a in accesses(node.value)
    )


@dataclass(frozen=True, slots=True)
class IndexMotion:
    """What moves the reads of a tensor by a node: the variables in the index of each dimension, read by read; all of
    them; whether data chooses any read."""

    reads: tuple[tuple[frozenset[str], ...], ...]
    variables: frozenset[str]
    by_data: bool


def index_motion(expr: TensorExpr) -> Mapping[str, IndexMotion]:
    """Tensor that a node reads -> what moves these reads."""
    return _moved_by(ById(expr))


@lru_cache(maxsize=8192)
def _moved_by(node: ById[TensorExpr]) -> Mapping[str, IndexMotion]:
    found: dict[str, list[ReadIndex]] = {}
    for seat in _seats(node):
        found.setdefault(seat.tensor, []).append(seat)
    return {
        tensor: IndexMotion(
            tuple(seat.variables for seat in own),
            frozenset().union(*(names for seat in own for names in seat.variables)),
            any(seat.by_data for seat in own),
        )
        for tensor, own in found.items()
    }


@dataclass(frozen=True, slots=True)
class _Known:
    """A read of a node with its forms if all are affine, the variables that move it, the iterators that guards keep to
    `ranges` (None: symbolic)."""

    read: Read
    forms: _Forms | None
    moving: frozenset[str]
    guarded: frozenset[str]
    ranges: _Ranges | None


@lru_cache(maxsize=8192)
def _known(node: ById[TensorExpr]) -> tuple[_Known, ...]:
    iterators, extents = frozenset(node.value.iterators), _bound_extents(node)
    return tuple(
        _Known(
            read,
            _forms(read, iterators),
            frozenset().union(*(variables(index) for index in read.index if index is not None)),
            frozenset(guard.iterator for guard in read.iterator_guards),
            _ranges(read.iterator_guards, extents, Candidates())
            if extents is not None and all(constant_value(guard.rest) is not None for guard in read.iterator_guards)
            else None,
        )
        for read in reads(node.value)
    )


def _forms(read: Read, iterators: frozenset[str]) -> _Forms | None:
    forms: list[_Form | None] = []
    for index in read.index:
        if index is None:
            forms.append(None)
            continue
        form = linear(index)
        if any(not isinstance(atom, Var) or atom.name not in iterators for atom, _, _ in form.terms):
            return None
        terms = tuple((atom.name, scale) for atom, scale, _ in form.terms if isinstance(atom, Var))
        plain = terms[0][0] if form.constant == 0 and len(terms) == 1 and terms[0][1] == 1 else None
        forms.append(_Form(form.constant, terms, plain))
    return tuple(forms)


def _ends(form: _Form, box: Box) -> Ends:
    if form.plain is not None:
        return box[form.plain]
    lo: Ints | int = form.constant
    hi: Ints | int = form.constant + 1
    for iterator, scale in form.terms:
        first, end = box[iterator]
        low, high = (first, end - 1) if scale > 0 else (end - 1, first)
        lo = lo + low * scale
        hi = hi + high * scale
    return lo, hi
