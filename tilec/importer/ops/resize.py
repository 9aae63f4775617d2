"""Resize with known scales: nearest neighbours and linear or cubic interpolation, one dimension after another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.value import Value, static
from tilec.ir.expr import Const, Expr, Var

LARGEST = 1 << 24
"""Longest dimension that is resized: the weights of its positions are computed at import."""


def index_of(op: Op, table: NDArray[np.int64], at: Var, part: str) -> Expr:
    """`table[at]` as quasi-affine index algebra when the table follows `(at * a + b) // c`, else as an access to it."""
    steps = np.diff(table)
    if table.size > 1 and table[0] == 0 and steps.min() >= 0 and steps.max() <= 1 and steps.any():
        repeat = int(np.flatnonzero(steps)[0]) + 1
        if np.array_equal(table, np.arange(table.size) // repeat):
            return formula("i // n", i=at, n=repeat)
    value = op.constant(table, "i64", part=part)
    return value.at([at])


@operator("Resize", "Upsample")
def _resize(op: Op) -> Value:
    x = op.value(0)
    sizes = static(x.shape)
    axes = op.integers("axes")
    dims = tuple(range(x.rank)) if axes is None else tuple(op.axis(a, x.rank) for a in axes)
    outputs, scales = _targets(op, x, dims)
    mode = op.text("mode", "nearest")
    if op.integer("antialias") or op.integer("exclude_outside"):
        raise op.unsupported("antialias or exclude_outside", "Export the model without it.")
    result = x
    for d, (output, scale) in enumerate(zip(outputs, scales, strict=True)):
        if scale == 1.0 and output == x.shape[d]:
            continue
        size, wanted = None if sizes is None else sizes[d], output
        if size is None:
            size = _known(op, x.shape[d])
        last = d == max(e for e, (o, s) in enumerate(zip(outputs, scales, strict=True)) if s != 1.0 or o != x.shape[e])
        result = _along(op, result, d, size, _known(op, wanted), scale, mode, part="" if last else f"axis{d}")
    return result


def _known(op: Op, extent: Expr) -> int:
    size = static((extent,))
    if size is None:
        raise op.unsupported("a resized dimension of symbolic extent", "Bind it with --shape SYMBOL=SIZE.")
    if not 0 <= size[0] <= LARGEST:
        raise op.invalid(f"a dimension of extent {size[0]} is resized")
    return size[0]


def _targets(op: Op, x: Value, dims: tuple[int, ...]) -> tuple[list[Expr], list[float]]:
    """Output extent and scale of every dimension, from scales or sizes."""
    outputs, scales = list(x.shape), [1.0] * x.rank
    factors = _factors(op)
    if factors:
        if len(factors) != len(dims):
            raise op.invalid(f"{len(factors)} scales for {len(dims)} axes")
        for d, factor in zip(dims, factors, strict=True):
            if not 0 < factor < LARGEST:
                raise op.invalid(f"a scale of {factor}")
            scales[d] = float(factor)
            if factor != 1.0:
                outputs[d] = Const(int(np.floor(_known(op, x.shape[d]) * factor)))
        return outputs, scales
    wanted = op.contents(3)
    if wanted is None:
        raise op.invalid("neither scales nor sizes are given")
    if op.text("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise op.unsupported("keep_aspect_ratio_policy", "Give the sizes themselves.")
    if len(wanted) != len(dims):
        raise op.invalid(f"{len(wanted)} sizes for {len(dims)} axes")
    for d, extent in zip(dims, wanted, strict=True):
        outputs[d] = extent
        if extent != x.shape[d]:
            size = _known(op, x.shape[d])
            scales[d] = _known(op, extent) / size if size else 1.0
    return outputs, scales


def _factors(op: Op) -> tuple[float, ...]:
    """The scales: an attribute of Upsample before opset 9, an input since; empty when sizes are given."""
    if "scales" in op.attributes:
        return tuple(float(v) for v in op.attributes["scales"])
    position = 1 if op.kind == "Upsample" or op.opset < 11 else 2
    given = op.optional(position)
    if given is None or given.shape == (Const(0),):
        return ()
    if given.array is None:
        raise op.unknown(position)
    return tuple(float(v) for v in given.array.tolist())


def _sources(op: Op, size: int, wanted: int, scale: float) -> NDArray[np.float64]:
    """The coordinate in the input of every output position, by coordinate_transformation_mode."""
    position = np.arange(wanted, dtype=np.float64)
    default = "asymmetric" if op.opset < 11 or op.kind == "Upsample" else "half_pixel"
    mode = op.text("coordinate_transformation_mode", default)
    if mode == "half_pixel":
        return (position + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel":
        return (position + 0.5) / scale - 0.5 if wanted > 1 else position * 0.0
    if mode == "asymmetric":
        return position / scale
    if mode == "align_corners":
        return position * (size - 1) / (wanted - 1) if wanted > 1 else position * 0.0
    if mode == "half_pixel_symmetric":
        center = size / 2 * (1 - wanted / (scale * size))
        return center + (position + 0.5) / scale - 0.5
    raise op.unsupported(f"coordinate_transformation_mode {mode!r}", "Use half_pixel, asymmetric or align_corners.")


def _along(op: Op, x: Value, d: int, size: int, wanted: int, scale: float, mode: str, part: str) -> Value:
    source = _sources(op, size, wanted, scale)
    if mode == "nearest":
        return _taps(op, x, d, wanted, [(_nearest(op, source), None)], size, part)
    if mode in ("linear", "bilinear"):
        low = np.floor(source)
        share = (source - low).astype(np.float32)
        return _taps(op, x, d, wanted, [(low, 1 - share), (low + 1, share)], size, part)
    if mode == "cubic":
        low = np.floor(source)
        weights = _cubic(source - low, op.number("cubic_coeff_a", -0.75))
        return _taps(op, x, d, wanted, [(low + k - 1, w) for k, w in enumerate(weights)], size, part)
    raise op.invalid(f"mode is {mode!r}", "It must be nearest, linear or cubic.")


def _nearest(op: Op, source: NDArray[np.float64]) -> NDArray[np.float64]:
    default = "floor" if op.opset < 11 or op.kind == "Upsample" else "round_prefer_floor"
    mode = op.text("nearest_mode", default)
    rounding: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
        "round_prefer_floor": lambda v: np.ceil(v - 0.5),
        "round_prefer_ceil": lambda v: np.floor(v + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    if mode not in rounding:
        raise op.invalid(f"nearest_mode is {mode!r}", f"It must be one of {', '.join(rounding)}.")
    return rounding[mode](source)


def _cubic(share: NDArray[np.float64], a: float) -> list[NDArray[np.float32]]:
    """Weights of the four neighbours (Keys 1981) with coefficient `a`."""
    far, near = [1 + share, 2 - share], [share, 1 - share]

    def outer(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    def inner(t: NDArray[np.float64]) -> NDArray[np.float64]:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    return [w.astype(np.float32) for w in (outer(far[0]), inner(near[0]), inner(near[1]), outer(far[1]))]


def _taps(
    op: Op,
    x: Value,
    d: int,
    wanted: int,
    taps: list[tuple[NDArray[np.float64], NDArray[np.float32] | None]],
    size: int,
    part: str,
) -> Value:
    """The weighted sum of some elements along a dimension, their indices kept inside."""
    axes = op.axes_of([Const(wanted) if e == d else extent for e, extent in enumerate(x.shape)])
    body: Expr | None = None
    for number, (indices, weights) in enumerate(taps):
        table = np.clip(indices, 0, size - 1).astype(np.int64)
        at = index_of(op, table, axes[d].var, f"index{d}_{number}")
        term: Expr = x.access([at if e == d else a.var for e, a in enumerate(axes)])
        if weights is not None:
            factor = op.constant(weights, x.ttype, part=f"weight{d}_{number}")
            term = formula("x * w", x=term, w=factor.access([axes[d].var]))
        body = term if body is None else formula("a + b", a=body, b=term)
    assert body is not None
    return op.emit(axes, body, x.ttype, part=part)
