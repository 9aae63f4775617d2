"""Convolution and transposed convolution in one to three dimensions, with groups, dilation and any padding."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.window import KERNEL, SPATIAL, guarded, inside, per_dimension, windows
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, require_same, shape_text
from tilec.importer.value import Value, static
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr, bound


def _zero(ttype: str) -> Const:
    return Const(0.0) if ttype in ("f64", "f32", "f16", "bf16") else Const(0)


def _kernel_of(op: Op, weight: Value) -> tuple[int, ...]:
    kernel = static(weight.shape[2:])
    if kernel is None or static(weight.shape[:2]) is None:
        raise op.unsupported(f"a weight of symbolic shape {shape_text(weight.shape)}", "Bind its symbols.")
    declared = op.integers("kernel_shape")
    if declared is not None and declared != kernel:
        raise ShapeError(f"kernel_shape is {list(declared)}, the weight has {list(kernel)}")
    return kernel


def _biased(op: Op, total: Value, bias: Value | None) -> Value:
    if bias is None:
        return total
    if bias.rank != 1:
        raise ShapeError(f"the bias has shape {shape_text(bias.shape)}, not one value for each channel")
    require_same(bias.shape[0], total.shape[1], "bias and channels")
    axes = op.builder.iterators(("n", "o", *SPATIAL[total.rank - 2]), total.shape)
    body = formula("x + b", x=total.access([a.var for a in axes]), b=bias.at([axes[1].var]))
    return op.emit(axes, body, total.ttype)


@dataclass(frozen=True, slots=True)
class Convolution:
    """Iterators of a convolution, the conditions under which a window's element lies in the input, and where input and
    weight are read."""

    axes: tuple[Axis, ...]
    reduce: tuple[Axis, ...]
    guards: tuple[Expr, ...]
    index: tuple[Expr, ...]
    weight: tuple[Expr, ...]


def convolution_of(op: Op, x: Value, weight: Value) -> Convolution:
    """`Y[n,o,h,w]` sums over `c,r,s`: `X[n, c of o's group, h*stride + r*dilation - pad, ...]` and `W[o,c,r,s]`.

    Raises ShapeError and ConfigError where shapes and attributes do not fit.
    """
    if x.rank < 3 or weight.rank != x.rank:
        raise ShapeError(f"an input {shape_text(x.shape)} and a weight {shape_text(weight.shape)}")
    frame = windows(op, x.shape[2:], _kernel_of(op, weight))
    group = op.integer("group", 1)
    outputs, channels = bound(weight.shape[0]) or 0, bound(weight.shape[1]) or 0
    require_same(
        x.shape[1], Const(channels * group), f"channels of {shape_text(x.shape)} and {shape_text(weight.shape)}"
    )
    if group < 1 or outputs % group:
        raise op.invalid(f"{outputs} output channels in {group} groups")
    names = SPATIAL[len(frame)]
    axes = op.builder.iterators(("n", "o", *names), [x.shape[0], weight.shape[0], *(w.out for w in frame)])
    reduce = op.builder.iterators(("c", *KERNEL[len(frame)]), [Const(channels), *(Const(w.kernel) for w in frame)])
    kernel = [Const(0) if r.extent == Const(1) else r.var for r in reduce]
    index = [w.position(a.var, r) for w, a, r in zip(frame, axes[2:], kernel[1:], strict=True)]
    channel = formula("o // m * n + c", o=axes[1].var, m=outputs // group, n=channels, c=kernel[0])
    if group == 1:
        channel = kernel[0]
    guards = tuple(inside(w, i) for w, i in zip(frame, index, strict=True))
    return Convolution(axes, reduce, guards, (axes[0].var, channel, *index), (axes[1].var, *kernel))


@operator("Conv")
def _conv(op: Op) -> Value:
    """The sum of products, then the bias; `where(inside, X[...], 0)` where a window may leave the tensor."""
    x, weight, bias = op.value(0), op.value(1), op.optional(2)
    conv = convolution_of(op, x, weight)
    value = guarded(conv.guards, x.access(conv.index), _zero(x.ttype))
    body = formula("x * w", x=value, w=weight.access(conv.weight))
    total = op.emit(conv.axes, body, x.ttype, conv.reduce, part="" if bias is None else "product")
    return _biased(op, total, bias)


@operator("ConvTranspose")
def _conv_transpose(op: Op) -> Value:
    """Every output sums the inputs whose windows cover it: those at `(h + pad - r*dilation) / stride`, if whole."""
    x, weight, bias = op.value(0), op.value(1), op.optional(2)
    rank = x.rank - 2
    if rank not in SPATIAL or weight.rank != x.rank:
        raise ShapeError(f"an input {shape_text(x.shape)} and a weight {shape_text(weight.shape)}")
    kernel = _kernel_of(op, weight)
    strides, dilations = per_dimension(op, "strides", rank), per_dimension(op, "dilations", rank)
    pads, out = _spread(op, x.shape[2:], kernel, strides, dilations)
    group = op.integer("group", 1)
    channels, outputs = bound(weight.shape[0]) or 0, bound(weight.shape[1]) or 0
    require_same(x.shape[1], weight.shape[0], f"channels of {shape_text(x.shape)} and {shape_text(weight.shape)}")
    if group < 1 or channels % group:
        raise op.invalid(f"{channels} input channels in {group} groups")
    axes = op.builder.iterators(("n", "o", *SPATIAL[rank]), [x.shape[0], Const(outputs * group), *out])
    reduce = op.builder.iterators(("c", *KERNEL[rank]), [Const(channels // group), *map(Const, kernel)])
    taps = [Const(0) if r.extent == Const(1) else r.var for r in reduce]
    guards: list[Expr] = []
    index: list[Expr] = []
    for d in range(rank):
        offset = formula("h + p - r * d", h=axes[2 + d].var, p=pads[d], r=taps[1 + d], d=dilations[d])
        at = formula("offset // s", offset=offset, s=strides[d])
        guards.append(formula("offset % s == 0", offset=offset, s=strides[d]))
        guards.append(formula("at >= 0 and at < size", at=at, size=x.shape[2 + d]))
        index.append(at)
    channel = formula("o // m * n + c", o=axes[1].var, m=outputs, n=channels // group, c=taps[0])
    value = guarded(guards, x.access([axes[0].var, channel, *index]), _zero(x.ttype))
    factor = weight.access([channel, formula("o % m", o=axes[1].var, m=outputs), *taps[1:]])
    body = formula("x * w", x=value, w=factor)
    total = op.emit(axes, body, x.ttype, reduce, part="" if bias is None else "product")
    return _biased(op, total, bias)


def _spread(
    op: Op, sizes: tuple[Expr, ...], kernel: tuple[int, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
) -> tuple[list[Expr], list[Expr]]:
    """Padding before, and output extents, of a transposed convolution."""
    rank = len(sizes)
    pads = op.integers("pads") or (0,) * (2 * rank)
    extra = op.integers("output_padding") or (0,) * rank
    wanted = op.integers("output_shape")
    mode = op.text("auto_pad", "NOTSET")
    if len(pads) != 2 * rank or len(extra) != rank or (wanted is not None and len(wanted) < rank):
        raise op.invalid(f"pads, output_padding or output_shape do not fit {rank} spatial dimensions")
    before: list[Expr] = []
    out: list[Expr] = []
    for d in range(rank):
        reach = formula(
            "(size - 1) * s + extra + span",
            size=sizes[d],
            s=strides[d],
            extra=extra[d],
            span=(kernel[d] - 1) * dilations[d] + 1,
        )
        if wanted is not None or mode in ("SAME_UPPER", "SAME_LOWER"):
            target = Const(wanted[-rank + d]) if wanted is not None else formula("e * s", e=sizes[d], s=strides[d])
            total = formula("maximum(reach - target, 0)", reach=reach, target=target)
            before.append(simplify(formula("t // 2" if mode == "SAME_UPPER" else "(t + 1) // 2", t=total)))
            # The reference does not reach further for `auto_pad`, though ONNX says so.
            out.append(simplify(target if wanted is not None else formula("r - t", r=reach, t=total)))
        elif mode in ("NOTSET", "", "VALID"):
            ends = (pads[d], pads[rank + d]) if mode != "VALID" else (0, 0)
            before.append(Const(ends[0]))
            out.append(simplify(formula("reach - p", reach=reach, p=sum(ends))))
        else:
            raise op.invalid(f"auto_pad is {mode!r}", "It must be NOTSET, SAME_UPPER, SAME_LOWER or VALID.")
    return before, out
