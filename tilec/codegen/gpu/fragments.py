"""How a unit of matrices reads the factors of a product: lanes load fragments, or instructions read shared memory.

A fragment is the words of a lane for each instruction of a step, round by round along the depth, in each along rows (or
columns). Expressions are over the loops of the tile's axes, the step along the depth and FRAGMENT.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilec.codegen.gpu.index_facts import is_multiple
from tilec.codegen.gpu.kernel_names import FRAGMENT, LANE
from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Binary, Call, Const, Expr
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.matrix_units import MatrixUnit, Span
from tilec.ir.program import Buffer
from tilec.ir.types import TTYPES

WORD = 4
"""Bytes of a register."""

ROW = 16
"""Bytes of a row of the matrices that one instruction loads."""

Load = Literal["own", "rows", "columns", "words", "elements"]
"""Where the words of a lane come from: its own registers; four fragments at once, of rows or of columns of 16 bytes in
shared memory; words in memory, or elements there that become words."""


@dataclass(frozen=True, slots=True)
class Part:
    """A box along an iterator: where it begins and how wide it is, and the extent of an instruction."""

    iterator: str
    lo: Expr
    width: Expr
    extent: int


@dataclass(frozen=True, slots=True)
class Fragment:
    """The fragments of a factor `body`, of a type, for `count` instructions along the rows (or columns) `across`, `at`
    so far along the depth. Of "rows" and "columns" `row` is the index of the one whose address a lane gives."""

    body: Expr
    ttype: str
    across: Part
    depth: Part
    span: Span
    deep: Span
    count: int
    at: Expr
    load: Load = "elements"
    row: tuple[Expr, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return TTYPES[self.ttype].bits // 8

    @property
    def rounds(self) -> tuple[int, int]:
        """Rounds along the depth and across of one instruction."""
        return self.depth.extent // (self.deep.lanes * self.deep.vector), self.across.extent // self.span.lanes

    @property
    def words_of_round(self) -> int:
        """Words of a lane in one round."""
        return max(1, self.deep.vector * self.size // WORD)

    @property
    def words(self) -> int:
        """Words of a lane in one instruction."""
        return self.rounds[0] * self.rounds[1] * self.words_of_round

    @property
    def together(self) -> int:
        """Instructions whose fragments one load of rows or columns brings."""
        return 4 // self.words

    @property
    def fills(self) -> bool:
        """Whether instructions fill the box across."""
        return self.across.width == Const(self.across.extent * self.count)

    def is_full(self, ranges: KnownRanges) -> bool:
        """Whether instructions fill the box along the depth."""
        return is_multiple(self.depth.width, self.depth.extent, ranges)

    def first(self, deep: int, row: int, ranges: KnownRanges) -> tuple[Expr, Expr]:
        """How far inside the box a lane's first element of a round lies, across and along the depth."""
        across = plus(times(plus(times(FRAGMENT, self.rounds[1]), Const(row)), self.span.lanes), _lane_of(self.span))
        begin = plus(times(plus(Const(deep * self.deep.lanes), _lane_of(self.deep)), self.deep.vector), self.at)
        return simplify(across, ranges), simplify(begin, ranges)

    def point(self, across: Expr, deep: Expr, ranges: KnownRanges) -> dict[str, Expr]:
        """The iterators so far inside the box."""
        return {
            self.across.iterator: simplify(plus(self.across.lo, across), ranges),
            self.depth.iterator: simplify(plus(self.depth.lo, deep), ranges),
        }

    def lane_row(self, neighbour: Expr, *, transposed: bool, ranges: KnownRanges) -> dict[str, Expr]:
        """The iterators at an element of the row, or of the column, whose address a lane gives."""
        eighth, low = Binary("//", LANE, Const(8)), Binary("%", LANE, Const(8))
        first, second = Binary("%", eighth, Const(2)), Binary("//", eighth, Const(2))
        blocks = (first, second) if self.rounds[1] == 2 else (second, first)
        across = plus(times(blocks[0], 8), neighbour if transposed else low)
        deep = plus(times(blocks[1], ROW // self.size), low if transposed else neighbour)
        across = plus(across, times(FRAGMENT, self.across.extent * self.together))
        if not self.fills:  # rows behind the last one are rows of no result: any others do
            across = Call("minimum", (across, Binary("-", self.across.width, Const(1))))
        return self.point(across, plus(self.at, deep), ranges)


@dataclass(frozen=True, slots=True)
class Described:
    """A factor in shared memory, which instructions of a group of warps read from `index` on; whether neighbours along
    its rows (or columns) lie side by side, and not those along the depth."""

    access: Access
    buffer: Buffer
    across: bool
    index: tuple[Expr, ...]


def sums_of_instruction(unit: MatrixUnit) -> tuple[int, int]:
    """Sums of a lane along rows and columns of an instruction, of one for a group of warps in the least width."""
    rows, columns = unit.sums
    width = columns.lanes * columns.vector if unit.reads_memory else unit.columns
    return unit.rows // rows.lanes, width // columns.lanes


def times(a: Expr, n: int) -> Expr:
    """A product with a number."""
    return Binary("*", a, Const(n))


def plus(a: Expr, b: Expr) -> Expr:
    """A sum."""
    return Binary("+", a, b)


def _lane_of(span: Span) -> Expr:
    if span.lanes == 1:
        return Const(0)
    return Binary("%", Binary("//", LANE, Const(span.step)), Const(span.lanes))
