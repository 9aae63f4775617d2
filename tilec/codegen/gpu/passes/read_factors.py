"""How units of matrices read the factors of products: what lanes load together, or where instructions read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilec.codegen.gpu.axes import axis_ranges
from tilec.codegen.gpu.copy_windows import contiguous
from tilec.codegen.gpu.fragments import ROW, WORD, Described, Fragment, Load, Part, times
from tilec.codegen.gpu.index_facts import is_multiple
from tilec.codegen.gpu.kernel_context import KernelContext
from tilec.codegen.gpu.kernel_ir import KernelIR, MatrixTile, Step, Tile
from tilec.codegen.gpu.kernel_names import FRAGMENT, step_along
from tilec.codegen.gpu.ranges import with_ranges
from tilec.codegen.gpu.rewrite import rewritten
from tilec.codegen.gpu.warpgroup_factors import described_factors
from tilec.errors import UnsupportedError
from tilec.ir.algebra import simplify
from tilec.ir.expr import Access, Binary, Const, Expr, Var, accesses, substitute
from tilec.ir.known_ranges import KnownRanges
from tilec.ir.matrix_units import Span

NEIGHBOUR = "#neighbour"
"""The element of a lane's words, or of a row."""

ROWS_OF_FOUR = (Span(8, 4), 4, 1)
"""The span across, and lanes and step along the depth, of fragments of which one load brings four."""


def read_factors(kernel: KernelIR, context: KernelContext) -> KernelIR:
    """The kernel with the factors of its products. Raises UnsupportedError for what units do not read as it lies."""

    def read(step: Step, known: KnownRanges) -> tuple[Step, ...]:
        if not isinstance(step, Tile) or step.matrix is None:
            return (step,)
        factors = factors_of(kernel, step, step.matrix, known)
        return (replace(step, matrix=replace(step.matrix, factors=factors)),)

    return rewritten(kernel, read, context.ranges)


def factors_of(
    kernel: KernelIR, tile: Tile, matrix: MatrixTile, ranges: KnownRanges
) -> tuple[Fragment | Described, ...]:
    """The factors of a product as a unit reads them where `ranges` hold."""
    at, known = _along_depth(tile, matrix, axis_ranges(tile.axes, ranges))
    if matrix.unit.reads_memory:
        return described_factors(kernel, tile, matrix, at, known)
    return tuple(_with_load(kernel, tile, each, known) for each in _fragments(tile, matrix, at, known))


def _along_depth(tile: Tile, matrix: MatrixTile, ranges: KnownRanges) -> tuple[Expr, KnownRanges]:
    """How far along the depth a step is, and the ranges with steps."""
    depth, extent = matrix.product.depth, matrix.unit.depth
    part, step = _part(tile, depth, extent, ranges), step_along(depth)
    count = simplify(Binary("//", Binary("+", part.width, Const(extent - 1)), Const(extent)), ranges)
    at = Const(0) if count == Const(1) else simplify(times(step, extent))
    return at, with_ranges(ranges, {step.name: count})


def _part(tile: Tile, iterator: str, extent: int, ranges: KnownRanges) -> Part:
    lo, hi = next((lo, hi) for name, lo, hi in tile.box if name == iterator)
    return Part(iterator, lo, simplify(Binary("-", hi, lo), ranges), extent)


def _fragments(tile: Tile, matrix: MatrixTile, at: Expr, ranges: KnownRanges) -> Iterator[Fragment]:
    """The fragments of rows and of columns."""
    unit, product = matrix.unit, matrix.product
    assert unit.left is not None
    assert unit.right is not None
    depth = _part(tile, product.depth, unit.depth, ranges)
    left, right = _part(tile, product.rows, unit.rows, ranges), _part(tile, product.columns, unit.columns, ranges)
    yield Fragment(product.left, unit.inputs[0], left, depth, *unit.left, matrix.down, at)
    yield Fragment(product.right, unit.inputs[1], right, depth, unit.right[1], unit.right[0], matrix.across, at)


def _with_load(kernel: KernelIR, tile: Tile, of: Fragment, ranges: KnownRanges) -> Fragment:
    """Fragments with the way in which lanes load them."""
    buffers = dict(tile.operands)
    read = [buffers[each.tensor] for each in accesses(of.body)]
    plain = isinstance(of.body, Access) and read[0].ttype == of.ttype
    if any(map(kernel.is_private, read)):
        if not plain:
            raise UnsupportedError(
                f"kernel {kernel.name} computes a factor of {tile.target.name} from registers",
                hint="Let a node of its own compute it.",
            )
        return replace(of, load="own")
    if not plain:
        return of
    options: tuple[Load, ...] = ("rows", "columns") if not kernel.is_global(read[0]) else ()
    for load in (*options, "words"):
        if _lies_so(tile, of, load, ranges):
            return replace(of, load=load, row=_begin_of_row(tile, of, load, ranges) if load != "words" else ())
    return of


def _lies_so(tile: Tile, of: Fragment, load: Load, ranges: KnownRanges) -> bool:
    """Whether elements of a factor lie side by side in memory where a load moves them at once."""
    assert isinstance(of.body, Access)
    buffer = dict(tile.operands)[of.body.tensor]
    if load == "words":
        return (of.is_full(ranges) or is_multiple(of.depth.width, of.deep.vector, ranges)) and all(
            contiguous(buffer, _word(tile, of, deep, row, ranges), NEIGHBOUR, of.deep.vector, _inside(of, ranges))
            for deep in range(of.rounds[0])
            for row in range(of.rounds[1])
        )
    if (of.size, load) not in ((1, "rows"), (2, "rows"), (2, "columns")):
        return False
    if (of.span, of.deep.lanes, of.deep.step) != ROWS_OF_FOUR or of.deep.vector != WORD // of.size:
        return False
    if of.rounds[0] != 2 or of.count % of.together or not of.is_full(ranges):
        return False
    inner = _along_rows(of, ranges)
    return contiguous(buffer, _row(tile, of, load, Var(NEIGHBOUR), inner), NEIGHBOUR, ROW // of.size, inner)


def _inside(of: Fragment, ranges: KnownRanges) -> KnownRanges:
    """The ranges with the elements of a lane's words of every instruction."""
    return with_ranges(ranges, {FRAGMENT.name: of.count, NEIGHBOUR: of.deep.vector})


def _word(tile: Tile, of: Fragment, deep: int, row: int, ranges: KnownRanges) -> list[Expr]:
    """The index of the elements of a lane's words in a round."""
    inner = _inside(of, ranges)
    across, begin = of.first(deep, row, inner)
    return _index(tile, of, of.point(across, Binary("+", begin, Var(NEIGHBOUR)), inner))


def _along_rows(of: Fragment, ranges: KnownRanges) -> KnownRanges:
    """The ranges with the elements of a row for every load."""
    return with_ranges(ranges, {FRAGMENT.name: of.count // of.together, NEIGHBOUR: ROW // of.size})


def _begin_of_row(tile: Tile, of: Fragment, load: Load, ranges: KnownRanges) -> tuple[Expr, ...]:
    """The index of the row, or of the column, whose address a lane gives."""
    elements = _row(tile, of, load, Var(NEIGHBOUR), _along_rows(of, ranges))
    return tuple(substitute(each, {NEIGHBOUR: Const(0)}) for each in elements)


def _row(tile: Tile, of: Fragment, load: Load, neighbour: Expr, ranges: KnownRanges) -> list[Expr]:
    return _index(tile, of, of.lane_row(neighbour, transposed=load == "columns", ranges=ranges))


def _index(tile: Tile, of: Fragment, point: dict[str, Expr]) -> list[Expr]:
    """The index of a factor at a point of the tile."""
    assert isinstance(of.body, Access)
    positions = {each.name: each.position for each in tile.axes} | point
    return [substitute(each, positions) for each in of.body.index]
