"""Which dimension becomes vectors, how many lanes they have, and what that is worth.

Sub-expressions are shared later, so GEMM, convolution, pooling, depthwise convolution and row reductions need
nothing of their own here.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilec.codegen.cpu.kernel_ir import Dim, Tile
from tilec.codegen.cpu.math_functions import HEAVY
from tilec.codegen.cpu.stride_analysis import Form, form_of, period_of
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.dots import DOTS
from tilec.ir.expr import Access, Binary, Call, Expr, accesses, children
from tilec.ir.scalars import BITCASTS
from tilec.ir.types import TTYPES
from tilec.ir.vector_pieces import vector_count
from tilec.spec.machine_costs import CpuCosts


def forms(tile: Tile) -> tuple[tuple[Form, ...], Form]:
    """Stride forms of what a tile reads, and of its target."""
    names = [d.name for d in tile.dims]
    inner = tuple(form_of(a.index[0], names) for a in accesses(tile.value))
    return inner, form_of(tile.target.index[0], names)


def lanes_of(tile: Tile, target: CpuTarget, ttypes: Mapping[str, str]) -> int:
    """Elements a vector holds: what fits of the widest type that is computed with."""
    found = {tile.ttype}
    for part in _values(tile.value):
        match part:
            case Access(memory, _):
                found.add(ttypes[memory])
            case Call(fn, _) if fn in TTYPES:
                found.add(fn)
            case Call(fn, _) if fn in BITCASTS:
                found.add(BITCASTS[fn])
            case Call("exp" | "log" | "tanh" | "erf" | "sigmoid", _):
                found.add("f32")
            case _:
                pass
    return min(target.lanes(t) for t in found)


def _values(expr: Expr) -> list[Expr]:
    """Sub-expressions that are values, not parts of offsets."""
    result: list[Expr] = [expr]
    if not isinstance(expr, Access):
        for child in children(expr):
            result += _values(child)
    return result


def work(tile: Tile, costs: CpuCosts) -> int:
    """Operations at one point, roughly."""
    calls = sum(isinstance(e, Call) and e.fn in HEAVY for e in _values(tile.value))
    return sum(isinstance(e, Binary | Call) for e in _values(tile.value)) + costs.function_work * calls + 1


def alternatives(tile: Tile) -> int:
    """Choices between two values that are both read from memory: at every point a kernel has code for both."""
    found = (e.args[1:] for e in _values(tile.value) if isinstance(e, Call) and e.fn == "where")
    return sum(bool(accesses(yes)) and bool(accesses(no)) for yes, no in found)


def dots(tile: Tile) -> int:
    """Instructions that add dot products at a point, such as those of a block of four-bit weights with one scale."""
    return sum(isinstance(e, Call) and e.fn in DOTS for e in _values(tile.value))


def _efficiency(dim: Dim, lanes: int) -> float:
    """Average lanes of the vectors that cover a dimension."""
    if dim.size is None:
        return lanes / 2
    return dim.size / vector_count(dim.size, lanes) if dim.size > 0 else 0.0


def _smoothness(tile: Tile, dim: Dim, costs: CpuCosts) -> float:
    """What vectors along a dimension are worth: 1 where all accesses are contiguous or the same for all lanes, less
    where some are shuffled out of several vectors, least where they are gathered one by one."""
    names = [d.name for d in tile.dims]
    worth = 1.0
    for access in accesses(tile.value):
        step = form_of(access.index[0], names).stride(dim.name)
        if step in (0, 1):
            continue
        if step is None:
            period = period_of(access.index[0], names, dim.name)
            step = period.forms[0].stride(dim.name) if period is not None else None
        near = isinstance(step, int) and -1 <= step <= costs.interleaved
        worth = costs.shuffled if worth >= costs.shuffled and near else costs.gathered
    return worth


def vector_dim(tile: Tile, lanes: int, costs: CpuCosts) -> str | None:
    """The vector dimension, spatial or reduced: the most lanes, inner dimensions first."""
    inner, place = forms(tile)
    best, chosen = 1.0, None
    for dim in reversed(tile.spatial):
        score = _efficiency(dim, lanes) * _smoothness(tile, dim, costs)
        if place.stride(dim.name) == 1 and score > best:
            best, chosen = score, dim.name
    for dim in reversed(tile.reduce):
        worth = _smoothness(tile, dim, costs)
        score = _efficiency(dim, lanes) * worth * costs.folded
        if worth > costs.gathered and any(form.stride(dim.name) == 1 for form in inner) and score > best:
            best, chosen = score, dim.name
    return chosen


def square_copy(tile: Tile, vector: str | None, lanes: int, ttypes: Mapping[str, str]) -> tuple[str, int] | None:
    """(dimension that the source is contiguous along, side of a square block) of a copy that transposes."""
    value = tile.value
    if vector is None or not isinstance(value, Access) or tile.combine != "none":
        return None
    (source, *others), _ = forms(tile)
    sizes = {d.name: d.size if d.size is not None else lanes for d in tile.spatial}
    across = next((d for d in sizes if source.stride(d) == 1), None)
    if others or source.stride(vector) in (0, 1) or across is None or ttypes[value.tensor] != tile.ttype:
        return None
    side = lanes
    while side > min(sizes[vector], sizes[across]):
        side //= 2
    return (across, side) if side >= 4 else None
