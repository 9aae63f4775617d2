"""Convolution in one to three dimensions, with groups, dilation and any padding."""

from __future__ import annotations

from dataclasses import dataclass

from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.window import KERNEL, SPATIAL, guarded, inside, windows
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr, constant_value
from tilec.ir.size_facts import divides
from tilec.ir.text import text_of

USUAL_KERNEL = 3
"""The extent of a kernel for which decisions are made where it varies."""


def zero_of(ttype: str) -> Const:
    """The literal 0 of a type."""
    return Const(0.0) if ttype in ("f64", "f32", "f16", "bf16") else Const(0)


def kernel_of(op: Op, weight: Value) -> tuple[Expr, ...]:
    """The extents of a kernel: those that the attribute declares, where it does."""
    kernel = weight.shape[2:]
    declared = op.integers("kernel_shape")
    if declared is None:
        for extent in kernel:
            op.sizes.expect(extent, USUAL_KERNEL)
        return kernel
    if len(declared) != len(kernel):
        raise ShapeError(f"kernel_shape is {list(declared)}, the weight has {shape_text(kernel)}")
    for extent, size in zip(kernel, declared, strict=True):
        op.require_same(extent, Const(size), f"kernel_shape is {list(declared)}, the weight has {shape_text(kernel)}")
    return tuple(map(Const, declared))


def in_groups(op: Op, channels: Expr, what: str, attribute: str = "group", named: str = "groups") -> tuple[int, Expr]:
    """The number of groups, and of channels in each: that this is a whole number is demanded of sizes."""
    group = op.integer(attribute, 1)
    known = constant_value(channels)
    if group < 1 or (known is not None and known % group):
        raise op.invalid(f"{text_of(channels)} {what} channels in {group} {named}")
    op.sizes.demand(divides(Const(group), channels), f"{what} channels in {group} {named}")
    return group, simplify(formula("c // g", c=channels, g=group))


def require_channels(op: Op, channels: Expr) -> None:
    """Demand that the number of input channels is not 0: ONNX gives no meaning to sums over none."""
    op.sizes.demand(formula("c >= 1", c=channels), "a convolution has input channels")


def biased(op: Op, total: Value, bias: Value | None) -> Value:
    """`total[n, o, ...] + bias[o]`; `total` itself without a bias."""
    if bias is None:
        return total
    if bias.rank != 1:
        raise ShapeError(f"the bias has shape {shape_text(bias.shape)}, not one value for each channel")
    op.require_same(bias.shape[0], total.shape[1], "bias and channels")
    axes = op.builder.iterators(("n", "o", *SPATIAL[total.rank - 2]), total.shape)
    body = formula("x + b", x=total.access([a.var for a in axes]), b=bias.at([axes[1].var]))
    return op.emit(axes, body, total.ttype)


@dataclass(frozen=True, slots=True)
class Convolution:
    """Iterators of a convolution, the conditions under which a window's element lies in the input, and the indices into
    input and weight."""

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
    frame = windows(op, x.shape[2:], kernel_of(op, weight))
    group, outputs = in_groups(op, weight.shape[0], "output")
    channels = weight.shape[1]
    require_channels(op, channels)
    inputs = simplify(formula("c * g", c=channels, g=group))
    op.require_same(x.shape[1], inputs, f"channels of {shape_text(x.shape)} and {shape_text(weight.shape)}")
    names = SPATIAL[len(frame)]
    axes = op.builder.iterators(("n", "o", *names), [x.shape[0], weight.shape[0], *(w.out for w in frame)])
    reduce = op.builder.iterators(("c", *KERNEL[len(frame)]), [channels, *(w.kernel for w in frame)])
    kernel = [Const(0) if r.extent == Const(1) else r.var for r in reduce]
    index = [w.position(a.var, r) for w, a, r in zip(frame, axes[2:], kernel[1:], strict=True)]
    channel = formula("o // m * n + c", o=axes[1].var, m=outputs, n=channels, c=kernel[0])
    if group == 1:
        channel = kernel[0]
    guards = tuple(inside(w, i) for w, i in zip(frame, index, strict=True))
    return Convolution(axes, reduce, guards, (axes[0].var, channel, *index), (axes[1].var, *kernel))


@operator("Conv")
def _conv(op: Op) -> Value:
    """The sum of products, then the bias; `where(inside, X[...], 0)` where a window may leave the tensor."""
    x, weight, bias = op.value(0), op.value(1), op.optional(2)
    conv = convolution_of(op, x, weight)
    value = guarded(conv.guards, x.access(conv.index), zero_of(x.ttype))
    body = formula("x * w", x=value, w=weight.access(conv.weight))
    total = op.emit(conv.axes, body, x.ttype, conv.reduce, part="" if bias is None else "product")
    return biased(op, total, bias)
