"""Symbols of a kernel: their ranges, and numbers to decide by in the place of sizes that only run time knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tilec.codegen.cpu.extents import Extent
from tilec.codegen.cpu.kernel_ir import Dim, Tile
from tilec.ir.algebra import Ranges, bounds_of, simplify, simplify_scalar
from tilec.ir.expr import Access, Binary, Call, Const, Expr, as_expr, constant_value, substitute, variables, walk
from tilec.ir.sizes import ANY_SIZE, SymbolRange, algebra_ranges, pivot_sizes

STEPS = 16
"""Steps of a reduction that every number of unrolled ones divides."""


@dataclass(frozen=True, slots=True)
class OpenSizes:
    """Symbols that a kernel takes as arguments, with the facts about them; none where all sizes are numbers."""

    ranges: Mapping[str, SymbolRange] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, symbols: tuple[str, ...], ranges: Mapping[str, SymbolRange]) -> OpenSizes:
        """The open sizes of a program; symbols without a range are any size."""
        return cls({symbol: ranges.get(symbol, ANY_SIZE) for symbol in symbols})

    @property
    def known(self) -> Ranges:
        """The ranges as the algebra takes them."""
        return algebra_ranges(self.ranges, self.ranges) if self.ranges else {}

    def depends(self, expr: Expr) -> bool:
        """Whether an expression mentions one of the symbols."""
        return bool(self.ranges) and not variables(expr).isdisjoint(self.ranges)

    def largest(self, extent: Extent) -> int | None:
        """The upper bound of an extent, None where there is none."""
        return extent if isinstance(extent, int) else bounds_of(extent, self.known)[1]

    def at_pivot(self, expr: Expr) -> Expr:
        """An expression with the symbols at the sizes that decisions are made for."""
        if not self.depends(expr):
            return expr
        values = {name: Const(size) for name, size in pivot_sizes(self.ranges, self.ranges).items()}
        return simplify(substitute(expr, values))

    def usual(self, extent: Extent) -> int | None:
        """About what an extent is: its value at the pivot; of a rest, which may be any, the largest. None for one that
        depends on other variables, and is not limited."""
        expr = as_expr(extent)
        if not self.depends(expr):
            return constant_value(expr)
        high = bounds_of(expr, self.known)[1]
        rest = any(isinstance(e, Binary) and e.op in ("//", "%") for e in walk(expr))
        rest = rest or any(isinstance(e, Call) for e in walk(expr))
        at_pivot = constant_value(self.at_pivot(expr))
        return high if high is not None and (rest or at_pivot is None) else at_pivot

    def sized(self, tile: Tile) -> Tile:
        """A tile with usual extents, what it touches as it is."""
        if not any(self.depends(dim.extent) for dim in tile.dims):
            return tile
        spatial, reduce = (tuple(map(self._typical_dim, dims)) for dims in (tile.spatial, tile.reduce))
        return replace(tile, spatial=spatial, reduce=reduce)

    def typical(self, tile: Tile) -> Tile:
        """A tile with numbers in the place of symbols, by which it is decided how it is cut."""
        if not self.ranges:
            return tile
        return replace(
            tile,
            spatial=tuple(map(self._typical_dim, tile.spatial)),
            reduce=tuple(_even(self._typical_dim(dim)) if self.depends(dim.extent) else dim for dim in tile.reduce),
            value=self._typical_value(tile.value),
            target=Access(tile.target.tensor, tuple(map(self._typical_value, tile.target.index))),
        )

    def _typical_dim(self, dim: Dim) -> Dim:
        usual = self.usual(dim.extent) if self.depends(dim.extent) else None
        return dim if usual is None else Dim(dim.name, Const(max(1, usual)))

    def _typical_value(self, expr: Expr) -> Expr:
        if not self.depends(expr):
            return expr
        values = {name: Const(size) for name, size in pivot_sizes(self.ranges, self.ranges).items()}
        return simplify_scalar(substitute(expr, values))


def _even(dim: Dim) -> Dim:
    """A typical dimension that steps of every usual width divide: which of them divide an open one is no matter."""
    size = dim.size or 1
    return dim if size <= STEPS else Dim(dim.name, Const(-(-size // STEPS) * STEPS))


NO_OPEN_SIZES = OpenSizes()
"""All sizes are numbers."""
