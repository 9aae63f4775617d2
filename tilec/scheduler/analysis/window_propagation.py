"""Propagate through one node for many candidate tiles at once (Welder, 3.2).

Nearly all reads are sums of iterators times integers. Their windows are a few additions on the ends of the tile's box,
after the box was moved to where the guards hold. Any other read goes to `tilec.ir.propagate`, one at a time. The affine
forms of a node's reads are computed once and cached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tilec.ir.by_identity import ById, by_identity
from tilec.ir.expr import Expr, TensorExpr, Var, accesses, constant_value, variables
from tilec.ir.group_windows import Flags
from tilec.ir.intervals import Candidates
from tilec.ir.propagate import read_window
from tilec.ir.reads import IteratorGuard, Read, linear, reads
from tilec.scheduler.analysis.access import is_data_dependent

Ints = NDArray[np.int64]
Ends = tuple[Ints | int, Ints | int]
"""Interval `[lo, hi)`; plain integers where all candidates agree."""
Box = Mapping[str, Ends]
Floats = NDArray[np.float64]
Window = tuple[Ends, ...]
Shapes = Mapping[str, tuple[Expr, ...]]


ALL_TILES: Final = 1.0
"""Share of tiles that read a tensor which no guard withholds from any of them."""


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """A node's read of a tensor in one tile.

    `window` is not clipped to the tensor, `share` is the fraction of tiles that read it, `kept` are the iterators whose
    guards withhold it from the other tiles.
    """

    window: Window
    share: Floats | float = ALL_TILES
    kept: frozenset[str] = frozenset()


def propagate_windows(expr: TensorExpr, box: Box, shapes: Shapes, numbers: Candidates) -> dict[str, ReadWindow]:
    """Windows that a node reads of each tensor for a box of its iterators: the largest that any tile of this size
    reads.

    A read whose guards confine it to a range of an iterator (one input of a concatenation) is measured in a tile inside
    that range. Other tiles skip it, provided the iterator moves the read window. Otherwise no window would show that
    they could, and a row placed behind others would be recomputed by every tile.
    """
    windows: dict[str, ReadWindow] = {}
    for analysed in _analysed_reads(expr):
        tile: Box = box
        share: Floats | float = ALL_TILES
        if analysed.guarded:
            extents = extents_of(expr, numbers)
            ranges = analysed.ranges or _ranges(analysed.read.iterator_guards, extents, numbers)
            tile, share = _moved(ranges, analysed.moving, box, extents)
        window = _window(analysed.read, analysed.forms, tile, shapes[analysed.read.tensor], numbers)
        if analysed.guarded:
            empty = _empty([tile[iterator] for iterator in analysed.guarded])
            if empty.any():
                window = tuple((np.where(empty, 0, first), np.where(empty, 0, end)) for first, end in window)
                share = np.where(empty, 0.0, share)
        read = ReadWindow(window, share, analysed.moving & analysed.guarded)
        other = windows.get(analysed.read.tensor)
        windows[analysed.read.tensor] = read if other is None else _both(other, read)
    return windows


def _window(read: Read, forms: _Forms | None, box: Box, shape: Sequence[Expr], numbers: Candidates) -> Window:
    """Window of a read in a tile where its guards hold."""
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
    """Whether any of the intervals is empty, per candidate."""
    empty: NDArray[np.bool_] = np.asarray(False)
    for lo, hi in intervals:
        empty = empty | np.asarray(hi <= lo)
    return empty


def _both(one: ReadWindow, other: ReadWindow) -> ReadWindow:
    """Hull of two reads of one tensor; a read of nothing does not widen it."""
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
    """First and last point of every guarded iterator at which the guards hold."""
    ranges: dict[str, tuple[Ints | int, Ints | int]] = {}
    for guard in guards:
        low, high = ranges.get(guard.iterator, (0, extents[guard.iterator] - 1))
        quotient = extent_of(guard.rest, numbers) // abs(guard.scale)
        ranges[guard.iterator] = (most(low, -quotient), high) if guard.scale > 0 else (low, least(high, quotient))
    return ranges


def _moved(ranges: _Ranges, moving: Set[str], box: Box, extents: Mapping[str, int]) -> tuple[Box, Floats | float]:
    """The box moved to where the guards hold, and the share of boxes of this size that the guards let through, taken
    over the iterators that move the read."""
    moved = dict(box)
    share: Floats | float = ALL_TILES
    for iterator, (low, high) in ranges.items():
        lo, hi = box[iterator]
        size, inside = hi - lo, most(high - low + 1, 0)
        start = least(most(lo, low), most(low, high + 1 - size))
        moved[iterator] = (start, least(start + size, high + 1))
        if iterator in moving:
            covered = most(least(size, inside), 1)
            share = np.asarray(share * np.minimum(size * inside / (most(extents[iterator], 1) * covered), 1.0))
    return moved, share


def extent_of(extent: Expr, numbers: Candidates) -> int:
    """An extent as a number; the likely size where it is symbolic."""
    constant = constant_value(extent)
    return _likely_size(extent, ById(numbers)) if constant is None else constant


def extents_of(expr: TensorExpr, numbers: Candidates) -> Mapping[str, int]:
    """Map from iterator of a node to its extent as a number."""
    constants = _constant_extents(expr)
    return _likely_extents(ById(expr), ById(numbers)) if constants is None else constants


@by_identity(8192)
def _constant_extents(expr: TensorExpr) -> Mapping[str, int] | None:
    """Extents of a node as numbers; None if any is symbolic."""
    extents = {i: constant_value(e) for i, e in expr.domain.items()}
    known = {i: n for i, n in extents.items() if n is not None}
    return known if len(known) == len(extents) else None


@lru_cache(maxsize=1 << 15)
def _likely_extents(node: ById[TensorExpr], numbers: ById[Candidates]) -> Mapping[str, int]:
    return {i: extent_of(e, numbers.value) for i, e in node.value.domain.items()}


@lru_cache(maxsize=1 << 15)
def _likely_size(extent: Expr, numbers: ById[Candidates]) -> int:
    return int(numbers.value.size(extent))


def least(a: Ints | int, b: Ints | int) -> Ints | int:
    """Elementwise minimum over candidates."""
    return min(a, b) if type(a) is int and type(b) is int else np.minimum(a, b)


def most(a: Ints | int, b: Ints | int) -> Ints | int:
    """Elementwise maximum over candidates."""
    return max(a, b) if type(a) is int and type(b) is int else np.maximum(a, b)


class CandidateEnds:
    """Ends of windows for the walk over a group (`tilec.ir.group_windows`): one place of every candidate tile.

    What all candidates agree on stays a plain integer, which costs nothing to add to.
    """

    @property
    def zero(self) -> Ints | int:
        """The plain 0."""
        return 0

    def add(self, a: Ints | int, b: Ints | int) -> Ints | int:
        """Sum."""
        return a + b

    def subtract(self, a: Ints | int, b: Ints | int) -> Ints | int:
        """Difference."""
        return a if type(b) is int and b == 0 else a - b

    def minimum(self, a: Ints | int, b: Ints | int) -> Ints | int:
        """The smaller number."""
        return least(a, b)

    def maximum(self, a: Ints | int, b: Ints | int) -> Ints | int:
        """The larger number."""
        return most(a, b)

    def select(self, condition: Flags, yes: Ints | int, no: Ints | int) -> Ints | int:
        """Candidate by candidate."""
        if isinstance(condition, bool):
            return yes if condition else no
        return np.where(condition, yes, no)

    def vacant(self, lo: Ints | int, hi: Ints | int) -> Flags:
        """Where the interval is empty; False where it is for no candidate."""
        empty = hi <= lo
        return empty if isinstance(empty, bool) or empty.any() else False

    def covers(self, lo: Ints | int, hi: Ints | int, first: Ints | int, end: Ints | int) -> Flags:
        """Where `[lo, hi)` contains `[first, end)`."""
        return (lo <= first) & (end <= hi)

    def stays(self, lo: Ints | int, hi: Ints | int, extent: Ints | int) -> bool:
        """Whether plain integers do: to move arrays is as fast as to find out whether they must move."""
        return type(lo) is int and type(hi) is int and type(extent) is int and lo >= 0 and hi <= extent

    def is_zero(self, number: Ints | int) -> bool:
        """Whether it is the plain 0 at which most tiles start."""
        return type(number) is int and number == 0

    def is_fixed(self, width: Ints | int) -> bool:
        """Every number is."""
        return isinstance(width, int | np.integer | np.ndarray)

    def anchor(self, start: Ints | int) -> Ints | int:
        """The start itself."""
        return start

    def origin(self, number: Ints | int) -> Ints | int:
        """The number in the first tile."""
        return number

    def shortfall(self, amount: Ints | int) -> Ints | int | None:
        """How far a number falls below 0."""
        return most(-amount, 0)


def hull(window: Sequence[Ends], other: Sequence[Ends]) -> Window:
    """The smallest window that contains both."""
    return tuple(
        (a if a is c else least(a, c), b if b is d else most(b, d))
        for (a, b), (c, d) in zip(window, other, strict=True)
    )


def volume(intervals: Sequence[Ends]) -> Ints:
    """Number of elements in a box of intervals."""
    total: Ints | int = 1
    for lo, hi in intervals:
        total = total * most(width(lo, hi), 0)
    return np.asarray(total, np.int64)


def width(lo: Ints | int, hi: Ints | int) -> Ints | int:
    """Number of elements in an interval; most start at a plain 0, for which no subtraction is needed."""
    return hi if type(lo) is int and lo == 0 else hi - lo


@dataclass(frozen=True, slots=True)
class _Form:
    """An affine index: a constant plus iterators times scales; `plain` names the iterator that is the whole index."""

    constant: int
    terms: tuple[tuple[str, int], ...]
    plain: str | None = None


_Forms = tuple[_Form | None, ...]
"""The affine form of every index of a read; None where the index is data-dependent."""

_Ranges = Mapping[str, tuple[Ints | int, Ints | int]]
"""Map from iterator to the first and last point at which its guards hold."""


@dataclass(frozen=True, slots=True)
class ReadIndex:
    """One read of a node: the tensor, the variables in the index of each dimension, whether data selects the
    element."""

    tensor: str
    variables: tuple[frozenset[str], ...]
    by_data: bool

    def moves(self, iterators: Set[str]) -> bool:
        """Whether the read window moves along any of the iterators."""
        return any(names & iterators for names in self.variables)


@by_identity(8192)
def read_indices(expr: TensorExpr) -> tuple[ReadIndex, ...]:
    """The reads of a node with the iterators that move each."""
    return tuple(
        ReadIndex(a.tensor, tuple(variables(i) for i in a.index), is_data_dependent(a)) for a in accesses(expr)
    )


@dataclass(frozen=True, slots=True)
class IndexMotion:
    """The iterators that move a node's reads of one tensor: variables per dimension for each read, their union, and
    whether data selects any read."""

    reads: tuple[tuple[frozenset[str], ...], ...]
    variables: frozenset[str]
    by_data: bool


@by_identity(8192)
def index_motion(expr: TensorExpr) -> Mapping[str, IndexMotion]:
    """Map from each tensor that a node reads to the iterators that move those reads."""
    by_tensor: dict[str, list[ReadIndex]] = {}
    for read in read_indices(expr):
        by_tensor.setdefault(read.tensor, []).append(read)
    return {
        tensor: IndexMotion(
            tuple(read.variables for read in indices),
            frozenset().union(*(names for read in indices for names in read.variables)),
            any(read.by_data for read in indices),
        )
        for tensor, indices in by_tensor.items()
    }


@dataclass(frozen=True, slots=True)
class PlainRead:
    """The only read of a tensor by a node whose every index is an iterator, without guards: its window is the box along
    these `iterators`; at the node's `own_point` they are its spatial ones, in their order."""

    tensor: str
    iterators: tuple[str, ...]
    own_point: bool


@by_identity(8192)
def plain_reads(expr: TensorExpr) -> tuple[PlainRead, ...] | None:
    """The reads of a node that reads each tensor once and plainly; None if it reads any otherwise."""
    found: dict[str, PlainRead] = {}
    for analysed in _analysed_reads(expr):
        forms, tensor = analysed.forms, analysed.read.tensor
        if forms is None:
            return None
        names = tuple(form.plain for form in forms if form is not None and form.plain is not None)
        if analysed.guarded or len(names) < len(forms) or len(set(names)) < len(names) or tensor in found:
            return None
        found[tensor] = PlainRead(tensor, names, names == expr.spatial)
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class _AnalysedRead:
    """A read of a node with its affine forms (None unless all indices are affine), the variables that move it, and its
    guarded iterators with their `ranges` (None if symbolic)."""

    read: Read
    forms: _Forms | None
    moving: frozenset[str]
    guarded: frozenset[str]
    ranges: _Ranges | None


@by_identity(8192)
def _analysed_reads(expr: TensorExpr) -> tuple[_AnalysedRead, ...]:
    iterators, extents = frozenset(expr.iterators), _constant_extents(expr)
    return tuple(
        _AnalysedRead(
            read,
            _forms(read, iterators),
            frozenset().union(*(variables(index) for index in read.index if index is not None)),
            frozenset(guard.iterator for guard in read.iterator_guards),
            _ranges(read.iterator_guards, extents, Candidates())
            if extents is not None and all(constant_value(guard.rest) is not None for guard in read.iterator_guards)
            else None,
        )
        for read in reads(expr)
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
