"""Symbols of a kernel: their ranges, and numbers to decide by in the place of sizes that only run time knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tilec.codegen.cpu.extents import Extent
from tilec.codegen.cpu.kernel_ir import Dim, Tile
from tilec.codegen.cpu.stride_analysis import form_of
from tilec.ir.algebra import bounds_of, simplify, simplify_scalar
from tilec.ir.expr import (
    Access,
    Binary,
    Call,
    Const,
    Expr,
    Var,
    accesses,
    as_expr,
    constant_value,
    substitute,
    variables,
    walk,
)
from tilec.ir.known_ranges import Ranges, shared_ranges
from tilec.ir.sizes import ANY_SIZE, SymbolRange, algebra_ranges, pivot_sizes

FAR = 1 << 10
"""Multiple of the usual sizes at which a row of several elements is one that is longer than one element."""

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
        return shared_ranges(algebra_ranges(self.ranges, self.ranges)) if self.ranges else {}

    def depends(self, expr: Expr) -> bool:
        """Whether an expression mentions one of the symbols."""
        return bool(self.ranges) and not variables(expr).isdisjoint(self.ranges)

    def largest(self, extent: Extent) -> int | None:
        """The upper bound of an extent, None where there is none."""
        return extent if isinstance(extent, int) else bounds_of(extent, self.known)[1]

    def is_empty(self, extent: Expr) -> bool:
        """Whether an extent is certainly 0 or less, also because sizes are multiples of their divisors."""
        units = {n: Binary("*", Var(n), Const(r.divisor)) for n, r in self.ranges.items() if r.divisor > 1}
        low = simplify(substitute(extent, units)) if units else extent
        high = bounds_of(low, shared_ranges(algebra_ranges(self.ranges, {})))[1]
        return high is not None and high <= 0

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
        high, at_pivot = self.largest(expr), constant_value(self.at_pivot(expr))
        return high if high is not None and (_is_rest(expr) or at_pivot is None) else at_pivot

    def sized(self, tile: Tile) -> Tile:
        """A tile with usual extents, what it touches as it is."""
        if not any(self.depends(dim.extent) for dim in tile.dims):
            return tile
        spatial, reduce = (tuple(map(self._typical_dim, dims)) for dims in (tile.spatial, tile.reduce))
        return replace(tile, spatial=spatial, reduce=reduce)

    def typical(self, tile: Tile) -> Tile:
        """A tile with numbers in the place of symbols, by which it is decided how it is cut. Rows of an open length
        that happens to be 0 or 1 at usual sizes are long ones: what lies behind them is side by side at no other."""
        if not self.ranges:
            return tile
        names = [dim.name for dim in tile.dims]
        factor = FAR if any(self._coincide(a.index[0], names) for a in (tile.target, *accesses(tile.value))) else 1
        index = tuple(self._apart(self._typical_value(e, factor), e, names, factor) for e in tile.target.index)
        return replace(
            tile,
            spatial=tuple(map(self._typical_dim, tile.spatial)),
            reduce=tuple(_even(self._typical_dim(dim)) if self.depends(dim.extent) else dim for dim in tile.reduce),
            value=self._typical_value(tile.value, factor),
            target=Access(tile.target.tensor, index),
        )

    def _coincide(self, offset: Expr, names: Sequence[str], factor: int = 1) -> tuple[str, ...]:
        """The dimensions along which a stride over rows of an open size is as short as one element, at a multiple of
        usual sizes."""
        open_strides = [(n, stride) for n, stride in form_of(offset, names).strides if not isinstance(stride, int)]
        known = [(name, constant_value(simplify(self._typical_value(stride, factor)))) for name, stride in open_strides]
        return tuple(name for name, stride in known if stride is not None and abs(stride) <= 1)

    def _apart(self, typical: Expr, offset: Expr, names: Sequence[str], factor: int) -> Expr:
        """A typical offset with long rows where rows are as short as one element at all sizes: of 0 or 1."""
        for name in self._coincide(offset, names, factor):
            typical = simplify_scalar(Binary("+", typical, Binary("*", Var(name), Const(FAR))))
        return typical

    def _typical_dim(self, dim: Dim) -> Dim:
        usual = self.usual(dim.extent) if self.depends(dim.extent) else None
        if usual is None:
            return dim
        widest = 1 << usual.bit_length() - 1 if usual > 0 and _is_rest(dim.extent) else max(1, usual)
        return Dim(dim.name, Const(widest))

    def _typical_value(self, expr: Expr, factor: int) -> Expr:
        if not self.depends(expr):
            return expr
        values = {name: Const(size * factor) for name, size in pivot_sizes(self.ranges, self.ranges).items()}
        return simplify_scalar(substitute(expr, values))


def _is_rest(extent: Expr) -> bool:
    """Whether an extent is what symbols leave over, and not a size itself; it is cut into powers of two."""
    return any(isinstance(e, Call) or (isinstance(e, Binary) and e.op in ("//", "%")) for e in walk(extent))


def _even(dim: Dim) -> Dim:
    """A typical dimension that steps of every usual width divide: which of them divide an open one is no matter."""
    size = dim.size or 1
    return dim if size <= STEPS else Dim(dim.name, Const(-(-size // STEPS) * STEPS))


NO_OPEN_SIZES = OpenSizes()
"""All sizes are numbers."""
