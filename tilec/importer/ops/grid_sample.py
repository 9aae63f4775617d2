"""GridSample: an image or volume sampled at positions given by a tensor, by neighbours and weights per dimension."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.names import REDUCED
from tilec.importer.operator import Op
from tilec.importer.ops.resize_taps import CUBIC, HAT
from tilec.importer.ops.window import guarded
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.expr import Call, Const, Expr, constant_value
from tilec.ir.types import TTYPES

MODES = {"bilinear": "linear", "bicubic": "cubic"}
TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
"""Number of neighbours along a dimension."""

MAX_UNROLLED = 8
"""Maximal number of neighbours of a point that are summed in one body; more are a reduction."""

CUBIC_COEFFICIENT = -0.75


@dataclass(frozen=True, slots=True)
class Along:
    """The neighbours along one dimension: their indices and weights, neighbours by points; no weights for one
    neighbour."""

    size: Expr
    index: Value
    weight: Value | None


@operator("GridSample")
def _grid_sample(op: Op) -> Value:
    x, grid = op.value(0), op.value(1)
    spatial = x.rank - 2
    described = f"an input {shape_text(x.shape)} and a grid {shape_text(grid.shape)}"
    if spatial < 1 or grid.rank != x.rank:
        raise ShapeError(described)
    op.require_same(grid.shape[-1], Const(spatial), f"{described}, coordinates")
    op.require_same(x.shape[0], grid.shape[0], "the batches of the input and the grid")
    mode = MODES.get(op.text("mode", "linear"), op.text("mode", "linear"))
    padding = op.text("padding_mode", "zeros")
    if mode not in TAPS:
        raise op.invalid(f"mode is {mode!r}", f"It must be one of {', '.join(TAPS)}.")
    if padding not in ("zeros", "border", "reflection"):
        raise op.invalid(f"padding_mode is {padding!r}", "It must be zeros, border or reflection.")
    points = op.axes_of(grid.shape[:-1])
    lines = [_along(op, grid, points, d, x.shape[2 + d], spatial, mode, padding) for d in range(spatial)]
    return _sampled(op, x, grid, lines, TAPS[mode], padding == "zeros")


def _along(
    op: Op, grid: Value, points: tuple[Axis, ...], d: int, size: Expr, spatial: int, mode: str, padding: str
) -> Along:
    """The neighbours along dimension d; the grid lists dimensions from the last one on.

    As in the reference, cubic interpolation beyond a border continues with the position and repeats only the border's
    elements.
    """
    compute = "f64" if grid.ttype == "f64" else "f32"
    given: Expr = grid.access([*(a.var for a in points), Const(spatial - 1 - d)])
    given = given if grid.ttype == compute else Call(compute, (given,))
    align = bool(op.integer("align_corners"))
    fixed = constant_value(size)
    extent = Call(compute, (size,)) if fixed is None else Const(float(fixed))
    text = "(g + 1.0) / 2.0 * (n - 1.0)" if align else "((g + 1.0) * n - 1.0) / 2.0"
    position = op.emit(points, formula(text, g=given, n=extent), compute, part=f"position{d}")
    if padding == "reflection" or (padding == "border" and mode != "cubic"):
        moved = _moved(position.access([a.var for a in points]), extent, padding, align)
        position = op.emit(points, moved, compute, part=f"inside{d}")
    at = position.access([a.var for a in points])
    count = TAPS[mode]
    (tap,) = op.builder.iterators(("t",), [Const(count)])
    nearest = "i64(round(c))" if count == 1 else "i64(floor(c)) + t - before"
    place = formula(nearest, c=at, t=tap.var, before=(count - 1) // 2)
    index = op.emit((tap, *points), _padded_index(place, size, padding, align), "i64", part=f"index{d}")
    if count == 1:
        return Along(size, index, None)
    distance = formula(f"abs({compute}(i) - c)", i=place, c=at)
    weight = formula(HAT if mode == "linear" else CUBIC, t=distance, a=CUBIC_COEFFICIENT)
    return Along(size, index, op.emit((tap, *points), weight, compute, part=f"weight{d}"))


def _moved(at: Expr, extent: Expr, padding: str, align: bool) -> Expr:
    """A position clamped to the border, or reflected at the border pixels' centres (`align`) or outer edges."""
    if padding == "border":
        return formula("maximum(minimum(c, n - 1.0), 0.0)", c=at, n=extent)
    low = 0.0 if align else -0.5
    room = formula("n - 1.0" if align else "n", n=extent)
    turn = formula("fmod(abs(c - low), 2.0 * r)", c=at, low=low, r=room)
    back = formula("where(r > 0.0, where(m > r, 2.0 * r - m, m) + low, 0.0)", m=turn, r=room, low=low)
    return formula("where(c >= low and c <= low + r, c, back)", c=at, low=low, r=room, back=back)


def _padded_index(place: Expr, size: Expr, padding: str, align: bool) -> Expr:
    """The index read for a neighbour under the padding mode; with zero padding, an index outside marks a zero."""
    if padding == "zeros":
        return place
    if padding == "border":
        return formula("maximum(minimum(i, n - 1), 0)", i=place, n=size)
    period = formula("maximum(2 * (n - 1), 1)" if align else "2 * n", n=size)
    turned = formula("i % p", i=place, p=period)
    return formula("where(m < n, m, p - m - edge)", m=turned, n=size, p=period, edge=0 if align else 1)


def _sampled(op: Op, x: Value, grid: Value, lines: list[Along], count: int, zeros: bool) -> Value:
    """The neighbours of every point, weighted and summed."""
    axes = op.axes_of([*x.shape[:2], *grid.shape[1:-1]])
    place = [axes[0].var, *(a.var for a in axes[2:])]
    taps = op.builder.iterators(REDUCED, [Const(count)] * len(lines))
    smooth = lines[0].weight is not None
    compute = x.ttype if x.ttype in ("f32", "f64") or not smooth else "f32"

    def term(chosen: tuple[Expr, ...]) -> Expr:
        index = [line.index.access([t, *place]) for line, t in zip(lines, chosen, strict=True)]
        safe = [formula("maximum(minimum(i, n - 1), 0)", i=i, n=v.size) for i, v in zip(index, lines, strict=True)]
        element: Expr = x.access([axes[0].var, axes[1].var, *(safe if zeros else index)])
        element = element if x.ttype == compute else Call(compute, (element,))
        if zeros:
            inside = [formula("i >= 0 and i < n", i=i, n=v.size) for i, v in zip(index, lines, strict=True)]
            element = guarded(inside, element, _zero(compute))
        for line, t in zip(lines, chosen, strict=True):
            if line.weight is not None:
                weight: Expr = line.weight.access([t, *place])
                weight = weight if line.weight.ttype == compute else Call(compute, (weight,))
                element = formula("x * w", x=element, w=weight)
        return element

    if count ** len(lines) > MAX_UNROLLED:
        total = op.emit(axes, term(tuple(t.var for t in taps)), compute, taps, part="" if x.ttype == compute else "sum")
    else:
        terms = [term(tuple(map(Const, chosen))) for chosen in product(range(count), repeat=len(lines))]
        body = terms[0]
        for other in terms[1:]:
            body = formula("a + b", a=body, b=other)
        total = op.emit(axes, body, compute, part="" if x.ttype == compute else "sum")
    return total if x.ttype == compute else op.map(f"{x.ttype}(x)", x=total)


def _zero(ttype: str) -> Const:
    return Const(False) if ttype == "bool" else Const(0.0) if TTYPES[ttype].kind == "float" else Const(0)
