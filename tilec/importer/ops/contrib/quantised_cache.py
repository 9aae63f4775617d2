"""Caches of keys and values in 8 or 4 bits: a scale for all, or for each head and channel; attention reads numbers."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.shapes import ShapeError, shape_text, size_of
from tilec.importer.value import Value
from tilec.ir.expr import Const, Expr


def require_codes(op: Op, caches: Sequence[Value | None], scales: Sequence[Value | None]) -> int:
    """The bits of an element of quantised caches, 0 of others. Raises UnsupportedError and ConfigError."""
    bits = op.integer("kv_cache_bit_width", 8)
    kinds = {op.text(f"{side}_quant_type", "NONE") for side in "kv"}
    if all(scale is None for scale in scales) and kinds == {"NONE"}:
        return 0
    if None in (*caches, *scales) or "NONE" in kinds:
        raise op.invalid("a quantised cache without a cache, scales or the attributes that say so")
    if bits not in (4, 8) or any(cache is None or cache.ttype != {8: "i8", 4: "u8"}[bits] for cache in caches):
        raise op.unsupported(f"caches of {bits} bits in this type")
    return bits


def quantised(op: Op, new: Value, scale: Value, bits: int, part: str) -> Value:
    """The codes of new rows `[b, n, s, h]`; two of 4 bits share a byte, the first in its lower half."""
    width = new.shape[3] if bits == 8 else op.divided(new.shape[3], 2, "bytes")
    axes = op.axes_of((*new.shape[:3], width))
    vb, vn, vs, vh = (axis.var for axis in axes)

    def real(channel: Expr) -> Expr:
        x, s = new.access((vb, vn, vs, channel)), _scale(op, scale, (vn, channel), (new.shape[1], new.shape[3]))
        return formula("round(x / s)", x=x if new.ttype == "f32" else formula("f32(x)", x=x), s=s)

    if bits == 8:
        return op.emit(axes, formula("i8(x)", x=real(vh)), "i8", part=part)
    low, high = (
        formula("i32(maximum(minimum(x, 7.0), -8.0)) + 8", x=real(formula(f"2 * c + {n}", c=vh))) for n in (0, 1)
    )
    return op.emit(axes, formula("u8(low + high * 16)", low=low, high=high), "u8", part=part)


def dequantised(op: Op, cache: Value, scale: Value, bits: int, ttype: str, part: str) -> Value:
    """The numbers `[b, n, t, h]` of a cache's rows."""
    width = cache.shape[3] if bits == 8 else formula("w * 2", w=cache.shape[3])
    axes = op.axes_of((*cache.shape[:3], width))
    vb, vn, vt, vh = (axis.var for axis in axes)
    if bits == 8:
        code = formula("i32(x)", x=cache.access((vb, vn, vt, vh)))
    else:
        byte = cache.access((vb, vn, vt, formula("c // 2", c=vh)))
        code = formula("bitand(shr(i32(x), i32(c % 2 * 4)), 15) - 8", x=byte, c=vh)
    number = formula("f32(q) * s", q=code, s=_scale(op, scale, (vn, vh), (cache.shape[1], width)))
    return op.emit(axes, number if ttype == "f32" else formula(f"{ttype}(x)", x=number), ttype, part=part)


def _scale(op: Op, scale: Value, place: tuple[Expr, Expr], extents: tuple[Expr, Expr]) -> Expr:
    """The scale of a head's channel; onnxruntime-genai's builder writes those of all heads in one row."""
    head, channel = place
    if size_of(scale.shape) == Const(1):
        return scale.access([Const(0)] * scale.rank)
    if scale.rank == 1:
        every = formula("n * w", n=extents[0], w=extents[1])
        op.require_same(scale.shape[0], every, "scales and the channels of all heads of a cache")
        return scale.access([formula("n * w + c", n=head, w=extents[1], c=channel)])
    if scale.rank != 4:
        told = f"scales {shape_text(scale.shape)} of a cache"
        raise ShapeError(f"{told}, not one, not [heads * channels], and not [1, heads, 1, channels]")
    at = (Const(0), head, Const(0), channel)
    return scale.access([Const(0) if n == Const(1) else i for i, n in zip(at, scale.shape, strict=True)])
