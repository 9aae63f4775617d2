"""DFT and STFT: contractions with cosines and sines, in two stages for long composite lengths (Cooley and Tukey 1965).

Complex numbers are a last dimension of two, so a transform multiplies by a real matrix over (position, part).
"""

from __future__ import annotations

from math import isqrt, pi

from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Call, Const, Expr, constant_value

MAX_PLAIN = 256
"""Maximal length at which one contraction is as fast as two."""

MAX_TRANSFORM = 1024
"""Maximal length of a transform by one contraction: its matrix has four times the square of this many elements."""


@operator("DFT")
def _dft(op: Op) -> Value:
    x = op.value(0)
    if x.rank < 2:
        raise ShapeError(f"a signal {shape_text(x.shape)} without positions and parts")
    axis = op.integer("axis", 1) if op.opset < 20 else -2
    if op.opset >= 20 and op.optional(2) is not None:
        axis = constant_value(op.single(2)) or 0
    axis = op.axis(axis, x.rank)
    if axis == x.rank - 1:
        raise op.invalid("the axis is the last one", "That holds the real and imaginary parts.")
    inverse, half = bool(op.integer("inverse")), bool(op.integer("onesided"))
    parts = _parts(op, x)
    if half and not inverse:
        _require_real(op, parts, "Its result is not symmetric.")
    given = op.contents(1)
    usual = simplify(formula("2 * (n - 1)" if inverse and half else "n", n=x.shape[axis]))
    n = _length(op, given[0] if given else usual)
    if inverse and half:
        return _real_inverse(op, x, axis, n)
    return transformed(op, x, axis, n, n // 2 + 1 if half else n, inverse)


@operator("STFT")
def _stft(op: Op) -> Value:
    """Frames `signal[f * step + j] * window[j]`, each transformed."""
    x, window = op.value(0), op.optional(2)
    step = op.single(1)
    given = op.contents(3)
    length = given[0] if given else window.shape[0] if window is not None else x.shape[1]
    if x.rank not in (2, 3) or (window is not None and window.rank != 1):
        raise ShapeError(f"a signal {shape_text(x.shape)}, which is not (batch, positions, parts)")
    if window is not None:
        op.require_same(window.shape[0], length, "the window and the frame")
    n = _length(op, length)
    parts = _parts(op, x) if x.rank == 3 else Const(1)
    half = bool(op.integer("onesided", 1))
    if half:
        _require_real(op, parts, "Set the attribute onesided to 0.")
    op.sizes.demand(formula("size >= n", size=x.shape[1], n=n), "the signal has a frame")
    frames = simplify(formula("(size - n) // step + 1", size=x.shape[1], n=n, step=step))
    axes = op.axes_of([x.shape[0], frames, Const(n), parts])
    batch, frame, at, part = (a.var for a in axes)
    place = formula("f * step + j", f=frame, step=step, j=at)
    element: Expr = x.access([batch, place, part] if x.rank == 3 else [batch, place])
    if window is not None:
        element = formula("x * w", x=element, w=window.access([at]))
    return transformed(op, op.emit(axes, element, x.ttype, part="frames"), 2, n, n // 2 + 1 if half else n, False)


def _parts(op: Op, x: Value) -> Expr:
    """The last extent of a signal."""
    parts = x.shape[-1]
    described = f"the last extent of the signal {shape_text(x.shape)} is neither 1 (real) nor 2 (complex)"
    op.sizes.assume(formula("n >= 1", n=parts), described)
    op.sizes.assume(formula("n <= 2", n=parts), described)
    return parts


def _require_real(op: Op, parts: Expr, hint: str) -> None:
    """Demand that a signal whose transform is one-sided is real."""
    if constant_value(parts) == 2:
        raise op.invalid("a one-sided transform of a complex signal", hint)
    op.require_same(parts, Const(1), "a one-sided transform of a complex signal")


def _length(op: Op, length: Expr) -> int:
    n = op.fixed(length, "the factors of a transform")
    if n < 1:
        raise op.invalid(f"a transform of length {n}")
    return n


def transformed(op: Op, x: Value, axis: int, n: int, bins: int, inverse: bool, part: str = "") -> Value:
    """The first `bins` elements of the transform of length `n` along an axis, as complex numbers.

    Signals are cut, or padded with zeros, to that length.
    """
    if x.ttype not in ("f32", "f64"):
        wide = op.map("f32(x)", x=x, part="wide")
        return op.map(f"{x.ttype}(x)", x=transformed(op, wide, axis, n, bins, inverse, "wide_result"), part=part)
    divisor = _divisor(n)
    if n <= MAX_PLAIN or (divisor == 1 and n <= MAX_TRANSFORM):
        table = _matrix(op, n, _parts(op, x), bins, inverse, x.ttype, "matrix")
        return _contracted(op, x, axis, n, table, scale=n if inverse else 1, part=part)
    if n // divisor > MAX_TRANSFORM:
        raise op.unsupported(
            f"the tensor expression for a transform of length {n} = {divisor} * {n // divisor} would take too long",
            "A length without large prime factors is computed natively.",
        )
    return _two_stages(op, x, axis, n, bins, inverse, divisor, part)


def _divisor(n: int) -> int:
    """The largest divisor up to the square root."""
    return next(d for d in range(isqrt(n), 0, -1) if n % d == 0)


def _angle(phase: Expr, n: int) -> Expr:
    """2 pi phase / n, with the phase modulo n so that large phases lose no precision."""
    return formula("f64(phase % n) * turn", phase=phase, n=n, turn=2 * pi / n)


def _matrix(op: Op, n: int, parts: Expr, bins: int, inverse: bool, ttype: str, part: str) -> Value:
    """`M[j, d, k, c]`: the contribution of part d at position j to part c of element k."""
    position, part_in, element, part_out = axes = op.axes_of([Const(n), parts, Const(bins), Const(2)])
    angle = _angle(formula("j * k", j=position.var, k=element.var), n)
    # exp(s*i*a) is cos(a) + s*i*sin(a): the parts (re, im) become (re cos - s im sin, s re sin + im cos).
    text = "where(d == c, cos(a), where(c == 0, -s, s) * sin(a))"
    body = formula(text, d=part_in.var, c=part_out.var, a=angle, s=1.0 if inverse else -1.0)
    return op.emit(axes, Call(ttype, (body,)), ttype, part=part)


def _contracted(op: Op, x: Value, axis: int, n: int, table: Value, scale: int, part: str = "") -> Value:
    """The sum over positions and parts of the signal times a matrix, divided by `scale`."""
    shape = [*x.shape]
    shape[axis], shape[-1] = table.shape[2], table.shape[3]
    axes = op.axes_of(shape)
    size = constant_value(x.shape[axis])
    read = min(n, size) if size is not None else n
    reduce = op.builder.iterators(("r", "s"), [Const(read), x.shape[-1]])
    index: list[Expr] = [a.var for a in axes]
    index[axis], index[-1] = reduce[0].var, reduce[1].var
    element: Expr = x.access(index)
    if size is None:
        element = formula("where(j < e, x, 0.0)", j=reduce[0].var, e=x.shape[axis], x=element)
    entry: Expr = table.access([reduce[0].var, reduce[1].var, axes[axis].var, axes[-1].var])
    total = op.emit(axes, formula("x * m", x=element, m=entry), x.ttype, reduce, part=part if scale == 1 else "sum")
    return total if scale == 1 else op.map("x / n", x=total, n=float(scale), part=part)


def _two_stages(op: Op, x: Value, axis: int, n: int, bins: int, inverse: bool, p: int, part: str) -> Value:
    """With n = p * q, j = j1 * q + j2 and k = k1 + p * k2: transforms of length p over j1, twiddle factors exp(+-2 pi i
    j2 k1 / n), and transforms of length q over j2."""
    q = n // p
    before, behind = x.shape[:axis], x.shape[axis + 1 : -1]
    first = _matrix(op, p, _parts(op, x), p, inverse, x.ttype, "first_matrix")
    axes = op.axes_of([*before, Const(q), Const(p), *behind, Const(2)])
    reduce = op.builder.iterators(("r", "s"), [Const(p), x.shape[-1]])
    place = formula("r * q + j", r=reduce[0].var, q=q, j=axes[axis].var)
    element: Expr = x.access([*_vars(axes[:axis]), place, *_vars(axes[axis + 2 : -1]), reduce[1].var])
    size = constant_value(x.shape[axis])
    if size is None or size < n:
        element = formula("where(j < e, x, 0.0)", j=place, e=x.shape[axis], x=element)
    entry = first.access([reduce[0].var, reduce[1].var, axes[axis + 1].var, axes[-1].var])
    spread = op.emit(axes, formula("x * m", x=element, m=entry), x.ttype, reduce, part="first")
    turned = _turned(op, spread, axes, axis, n, inverse)
    rows = -(-bins // p)
    second = _matrix(op, q, Const(2), rows, inverse, x.ttype, "second_matrix")
    spectrum = _contracted(op, turned, axis, q, second, scale=n if inverse else 1, part="second")
    result = op.axes_of([*before, Const(bins), *behind, Const(2)])
    k = result[axis].var
    split = [formula("k // p", k=k, p=p), formula("k % p", k=k, p=p)]
    index = [*_vars(result[:axis]), *split, *_vars(result[axis + 1 :])]
    return op.emit(result, spectrum.access(index), x.ttype, part=part)


def _vars(axes: tuple[Axis, ...]) -> list[Expr]:
    return [a.var for a in axes]


def _turned(op: Op, x: Value, axes: tuple[Axis, ...], axis: int, n: int, inverse: bool) -> Value:
    """Every element times `exp(+-2 pi i j k / n)`, j and k being its indices along `axis` and the next one."""
    j, k, c = circle = op.axes_of([x.shape[axis], x.shape[axis + 1], Const(2)])
    angle = _angle(formula("j * k", j=j.var, k=k.var), n)
    text = "where(c == 0, cos(a), s * sin(a))"
    body = formula(text, c=c.var, a=angle, s=1.0 if inverse else -1.0)
    turn = op.emit(circle, Call(x.ttype, (body,)), x.ttype, part="circle")
    inner = [axes[axis].var, axes[axis + 1].var]
    other = formula("1 - c", c=axes[-1].var)
    product = formula(
        "x * t + where(c == 0, -1.0, 1.0) * y * u",
        x=x.access(_vars(axes)),
        y=x.access([*_vars(axes[:-1]), other]),
        t=turn.access([*inner, Const(0)]),
        u=turn.access([*inner, Const(1)]),
        c=axes[-1].var,
    )
    return op.emit(axes, product, x.ttype, part="turned")


def _real_inverse(op: Op, x: Value, axis: int, n: int) -> Value:
    """The real signal of a one-sided transform: the other half is its conjugate mirror image."""
    bins = n // 2 + 1
    axes = op.axes_of([*x.shape[:axis], Const(n), *x.shape[axis + 1 : -1], Const(2)])
    k, c = axes[axis].var, axes[-1].var
    mirror = formula("where(k < bins, k, n - k)", k=k, bins=bins, n=n)
    parts = _parts(op, x)
    held = c if parts == Const(2) else simplify(formula("minimum(c, n - 1)", c=c, n=parts))
    index = [*_vars(axes[:axis]), mirror, *_vars(axes[axis + 1 : -1]), Const(0) if parts == Const(1) else held]
    size = x.shape[axis]
    zero = "m >= e" if parts == Const(2) else "m >= e or c >= parts"
    # The transform of a real signal is real at zero and at half the length; imaginary parts there are ignored.
    text = f"where({zero} or (c == 1 and (k == 0 or 2 * k == n)), 0.0, where(c == 1 and k >= bins, -1.0, 1.0) * x)"
    body = formula(text, m=mirror, e=size, x=x.access(index), c=c, k=k, bins=bins, n=n, parts=parts)
    whole = transformed(op, op.emit(axes, body, x.ttype, part="whole"), axis, n, n, True, "complex")
    real = op.axes_of([*x.shape[:axis], Const(n), *x.shape[axis + 1 : -1], Const(1)])
    return op.emit(real, whole.access([*_vars(real[:-1]), Const(0)]), x.ttype)
