"""Resize and Upsample: nearest neighbours in one expression, interpolation one dimension after another."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.resize_taps import Line, Taps, as_float, coordinates, nearest, neighbours, read
from tilec.importer.ratio import Ratio, floor, product
from tilec.importer.registry import operator
from tilec.importer.value import Value
from tilec.ir.algebra import equal, simplify
from tilec.ir.expr import Access, Call, Const, Expr, constant_value, walk
from tilec.ir.text import text_of
from tilec.ir.types import TTYPES

MAX_EXTENT = 1 << 24
"""Maximal extent of a resized dimension: f32 counts its positions exactly."""

MAX_UNROLLED = 4
"""Maximal number of neighbours that are summed in one body; more are a reduction."""

INSIDE = "maximum(minimum(i, size - 1), 0)"
"""The index inside a dimension that is nearest to i."""

MAX_DENOMINATOR = 64
"""Maximal denominator of the scale of a symbolic dimension."""


@operator("Resize", "Upsample")
def _resize(op: Op) -> Value:
    x = op.value(0)
    axes = op.integers("axes")
    dims = tuple(range(x.rank)) if axes is None else tuple(op.axis(a, x.rank) for a in axes)
    mode = {"bilinear": "linear", "trilinear": "linear"}.get(op.text("mode", "nearest"), op.text("mode", "nearest"))
    if mode not in ("nearest", "linear", "cubic"):
        raise op.invalid(f"mode is {mode!r}", "It must be nearest, linear or cubic.")
    default = "asymmetric" if op.opset < 11 or op.kind == "Upsample" else "half_pixel"
    where = op.text("coordinate_transformation_mode", default)
    lines = _lines(op, x, dims)
    if where == "tf_crop_and_resize":
        lines = _cropped(op, lines, dims)
    if not lines:
        return x
    if mode == "nearest":
        return _nearest(op, x, lines, where)
    return _interpolated(op, x, lines, where, mode)


def _lines(op: Op, x: Value, dims: tuple[int, ...]) -> list[Line]:
    """The dimensions that change, from scales or sizes."""
    factors = _factors(op)
    if factors:
        if len(factors) != len(dims):
            raise op.invalid(f"{len(factors)} scales for {len(dims)} axes")
        lines = [_scaled(op, d, x.shape[d], factor) for d, factor in zip(dims, factors, strict=True)]
        return [line for line in lines if line.scale != Const(1.0)]
    wanted = op.contents(3)
    if wanted is None:
        raise op.invalid("neither scales nor sizes are given")
    if len(wanted) != len(dims):
        raise op.invalid(f"{len(wanted)} sizes for {len(dims)} axes")
    lines = [Line(d, x.shape[d], out, _ratio(out, x.shape[d])) for d, out in zip(dims, wanted, strict=True)]
    policy = op.text("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        lines = _keep_aspect_ratio(op, lines, policy)
    for line in lines:
        if not 0 <= (constant_value(line.out) or 0) <= MAX_EXTENT or (constant_value(line.size) or 0) > MAX_EXTENT:
            raise op.invalid(f"a dimension of extent {constant_value(line.size)} becomes {constant_value(line.out)}")
    return [line for line in lines if not equal(line.out, line.size)]


def _factors(op: Op) -> tuple[Ratio | float, ...]:
    """The scales, as ratios where sizes decide them; empty when sizes are given.

    They are an attribute of Upsample before opset 9, an input since.
    """
    if "scales" in op.attributes:
        return tuple(float(np.float32(v)) for v in op.attributes["scales"])
    position = 1 if op.kind == "Upsample" or op.opset < 11 else 2
    given = op.optional(position)
    if given is None or given.shape == (Const(0),):
        return ()
    if given.array is None:
        ratios = [ratio for ratio in given.ratios or (None,) if ratio is not None]
        if len(ratios) < len(given.ratios or (None,)):
            raise op.unknown(position)
        op.sizes.counted(*ratios)
        return tuple(ratio if (known := ratio.literal) is None else known for ratio in ratios)
    return tuple(float(v) for v in given.array.tolist())


def _scaled(op: Op, d: int, size: Expr, factor: Ratio | float) -> Line:
    """A dimension resized by a factor; the product is rounded to f32 before truncation, as in the reference."""
    if isinstance(factor, Ratio):
        return _scaled_by(op, d, size, factor)
    if not 0 < factor < MAX_EXTENT:
        raise op.invalid(f"a scale of {factor}")
    fixed = constant_value(size)
    if fixed is not None:
        out = int(np.float32(factor) * np.float32(fixed))
        if max(out, fixed) > MAX_EXTENT:
            raise op.invalid(f"a dimension of extent {fixed} becomes {out}")
        return Line(d, size, Const(out), Const(factor))
    fraction = Fraction(factor)
    if fraction.denominator > MAX_DENOMINATOR:
        raise op.unsupported(f"a symbolic dimension times {factor}", "Bind it with --shape SYMBOL=SIZE.")
    product = formula("size * p // q", size=size, p=fraction.numerator, q=fraction.denominator)
    return Line(d, size, simplify(product), Const(factor))


def _scaled_by(op: Op, d: int, size: Expr, factor: Ratio) -> Line:
    """A dimension resized by a factor that varies. One that is rounded may lose an element: the reference truncates."""
    out = product(Ratio(size), factor)
    if out is None:
        reason = f"a dimension times {text_of(factor.num)} / {text_of(factor.den)}, which is rounded before the product"
        raise op.unsupported(reason, "Bind its sizes with --shape SYMBOL=SIZE, or give sizes in place of scales.")
    op.sizes.counted(out)
    scale = formula("a / b", a=Call("f32", (factor.num,)), b=as_float(factor.den))
    return Line(d, size, floor(out).num, scale)


def _ratio(out: Expr, size: Expr) -> Expr:
    """The scale of a dimension, in f32."""
    known, fixed = constant_value(out), constant_value(size)
    if known is not None and fixed is not None:
        return Const(float(np.float32(known) / np.float32(fixed)) if fixed else 1.0)
    whole = constant_value(simplify(formula("out // size", out=out, size=size)))
    if whole is not None and equal(out, formula("size * n", size=size, n=whole)):
        return Const(float(whole))
    return formula("out / size", out=Call("f32", (out,)), size=as_float(size))


def _keep_aspect_ratio(op: Op, lines: list[Line], policy: str) -> list[Line]:
    """All dimensions resized by the same factor: the smallest for `not_larger`, the largest for `not_smaller`."""
    if policy not in ("not_larger", "not_smaller"):
        hint = "It must be stretch, not_larger or not_smaller."
        raise op.invalid(f"keep_aspect_ratio_policy is {policy!r}", hint)
    known = [(line, line.scale.value, constant_value(line.size)) for line in lines if isinstance(line.scale, Const)]
    sizes = [(line, np.float32(scale), size) for line, scale, size in known if size is not None]
    if len(sizes) != len(lines):
        raise op.unsupported(f"keep_aspect_ratio_policy {policy} over symbols", "Bind them with --shape SYMBOL=SIZE.")
    factor = (min if policy == "not_larger" else max)(scale for _, scale, _ in sizes)
    outs = [int(np.floor(factor * np.float32(size) + np.float32(0.5))) for _, _, size in sizes]
    pairs = zip(sizes, outs, strict=True)
    return [replace(line, out=Const(out), scale=Const(float(factor))) for (line, _, _), out in pairs]


def _cropped(op: Op, lines: list[Line], dims: tuple[int, ...]) -> list[Line]:
    """The dimensions with the region of interest in input 1, all starts, then all ends."""
    roi = op.value(1)
    if roi.shape != (Const(2 * len(dims)),):
        raise op.invalid(f"the region of interest must have {2 * len(dims)} elements")

    def at(position: int) -> Expr:
        element = roi.at([Const(position)])
        return element if roi.ttype == "f32" else Call("f32", (element,))

    places = {d: number for number, d in enumerate(dims)}
    return [
        replace(line, start=at(places[line.dimension]), end=at(len(dims) + places[line.dimension])) for line in lines
    ]


def _outside(line: Line, at: Value, index: Expr) -> Expr:
    return formula("c < 0.0 or c > last", c=at.at([index]), last=formula("size - 1.0", size=as_float(line.size)))


def _nearest(op: Op, x: Value, lines: list[Line], where: str) -> Value:
    older = op.opset < 11 or op.kind == "Upsample"
    shape = list(x.shape)
    for line in lines:
        shape[line.dimension] = line.out
    axes = op.axes_of(shape)
    index: list[Expr] = [a.var for a in axes]
    conditions: list[Expr] = []
    for line in lines:
        var = axes[line.dimension].var
        rounding = op.text("nearest_mode", _older_rounding(line) if older else "round_prefer_floor")
        repeated = _repeated(op, line, where, rounding, var)
        if repeated is not None:
            index[line.dimension] = repeated
            continue
        at = coordinates(op, line, where)
        index[line.dimension] = nearest(op, line, at, rounding, var)
        if where == "tf_crop_and_resize":
            conditions.append(_outside(line, at, var))
    body = x.at(index)
    for condition in conditions:
        body = formula("where(c, fill, x)", c=condition, fill=_fill(op, x.ttype), x=body)
    return op.emit(axes, body, x.ttype)


def _repeated(op: Op, line: Line, where: str, rounding: str, index: Expr) -> Expr | None:
    """`i // n` where a symbolic dimension grows n times and each element is repeated; None elsewhere.

    Coordinates advance by one every n positions, so that the first few elements are representative.
    """
    factor = line.scale.value if isinstance(line.scale, Const) else 0
    if (
        constant_value(line.size) is not None
        or factor < 1
        or factor % 1
        or where in ("align_corners", "tf_crop_and_resize")
    ):
        return None
    few = replace(line, size=Const(4), out=Const(4 * int(factor)))
    repeated = nearest(op, few, coordinates(op, few, where), rounding, index)
    return None if any(isinstance(e, Access) for e in walk(repeated)) else repeated


def _older_rounding(line: Line) -> str:
    """The rounding before opset 11: the reference rounds up when it shrinks."""
    shrinks = isinstance(line.scale, Const) and line.scale.value < 1
    return "ceil" if shrinks else "floor"


def _fill(op: Op, ttype: str) -> Const:
    value = op.number("extrapolation_value")
    return Const(value if TTYPES[ttype].kind == "float" else bool(value) if ttype == "bool" else int(value))


def _interpolated(op: Op, x: Value, lines: list[Line], where: str, mode: str) -> Value:
    """One dimension after another, in f32 or wider; integers are truncated at the end, as in the reference."""
    smooth, exclude = bool(op.integer("antialias")), bool(op.integer("exclude_outside"))
    compute = "f64" if x.ttype == "f64" else "f32"
    result = x
    for line in lines:
        last = line is lines[-1]
        at = coordinates(op, line, where)
        taps = neighbours(op, line, at, mode, smooth, exclude)
        fill = _outside(line, at, op.axes_of(result.shape)[line.dimension].var) if "crop" in where else None
        part = "" if last and x.ttype == compute else f"axis{line.dimension}"
        result = _along(op, result, line, taps, compute, fill, part)
    if result.ttype == x.ttype:
        return result
    body = "x" if TTYPES[x.ttype].kind == "float" else "round(x)" if smooth else "x"
    return op.map(f"{x.ttype}({body})", x=result)


def _along(op: Op, x: Value, line: Line, taps: Taps, compute: str, fill: Expr | None, part: str) -> Value:
    """The weighted sum of the neighbours along a dimension, with their indices clamped."""
    d = line.dimension
    axes = op.axes_of([line.out if e == d else extent for e, extent in enumerate(x.shape)])
    at = axes[d].var

    def term(tap: Expr) -> Expr:
        place = formula("first + t", first=taps.first.access([at]), t=tap)
        (axis,) = op.axes_of([line.out])
        if isinstance(tap, Const):
            body = formula(
                "maximum(minimum(first + t, size - 1), 0)", first=taps.first.access([axis.var]), t=tap, size=line.size
            )
            place = read(op.emit([axis], body, "i64", part=f"index{d}_{tap.value}"), at)
        else:
            place = formula(INSIDE, i=place, size=line.size)
        element: Expr = x.access([place if e == d else a.var for e, a in enumerate(axes)])
        weight: Expr = taps.weights.access([tap, at])
        element = element if x.ttype == compute else Call(compute, (element,))
        weight = weight if compute == "f32" else Call(compute, (weight,))
        return formula("x * w", x=element, w=weight)

    if taps.count > MAX_UNROLLED:
        (tap,) = op.builder.iterators(("r",), [Const(taps.count)])
        total = op.emit(axes, term(tap.var), compute, [tap], part=f"sum{d}" if fill is not None else part)
        if fill is None:
            return total
        body: Expr = total.access([a.var for a in axes])
    else:
        body = term(Const(0))
        for t in range(1, taps.count):
            body = formula("a + b", a=body, b=term(Const(t)))
    if fill is not None:
        body = formula("where(c, fill, x)", c=fill, fill=_fill(op, compute), x=body)
    return op.emit(axes, body, compute, part=part)
