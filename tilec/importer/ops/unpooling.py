"""Inverses of windows: MaxUnpool moves maxima back to their positions, Col2Im sums blocks into an image."""

from __future__ import annotations

from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.gather import require_range
from tilec.importer.ops.scatter import Search, scattered
from tilec.importer.ops.window import guarded, per_dimension
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, reshape_index, shape_text, size_of
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr, constant_value
from tilec.ir.size_facts import divides
from tilec.ir.text import text_of
from tilec.ir.types import TTYPES

UNPOOLED = "(e - 1) * s - p + k"
"""Extent of a dimension before windows of extent k with stride s, less the padding p."""


@operator("MaxUnpool")
def _max_unpool(op: Op) -> Value:
    """Zeros, and the elements of X at the indices I into the flat output (numbered as in onnxruntime)."""
    x, indices = op.value(0), op.value(1)
    rank = x.rank - 2
    kernel = op.integers("kernel_shape") or ()
    pads = op.integers("pads") or (0,) * (2 * rank)
    if rank < 1 or len(kernel) != rank or len(pads) != 2 * rank or indices.rank != x.rank:
        raise ShapeError(f"an input {shape_text(x.shape)} and a kernel {list(kernel)}")
    for d in range(x.rank):
        op.require_same(x.shape[d], indices.shape[d], f"dimension {d} of values and indices")
    strides = per_dimension(op, "strides", rank)
    if min((*strides, *kernel)) < 1:
        raise op.invalid(f"a kernel {list(kernel)} and strides {list(strides)}", "They must be positive.")
    shape = op.contents(2)
    if shape is None:
        sides = [
            simplify(formula(UNPOOLED, e=x.shape[2 + d], s=strides[d], p=pads[d] + pads[rank + d], k=kernel[d]))
            for d in range(rank)
        ]
        shape = (*x.shape[:2], *sides)
    if len(shape) != x.rank:
        raise ShapeError(f"an input {shape_text(x.shape)} and an output {shape_text(shape)}")
    require_range(op, indices, size_of(shape), wraps=False)
    axes = op.axes_of(shape)
    reads = op.builder.iterators([f"r{d}" for d in range(x.rank)], x.shape)
    flat = reshape_index([size_of(shape)], shape, [a.var for a in axes], sizes=op.sizes)[0]
    hit = formula("at == flat", at=indices.at([r.var for r in reads]), flat=flat)
    zeros = op.full(shape, 0.0 if TTYPES[x.ttype].kind == "float" else 0, x.ttype, part="zeros")
    return scattered(op, zeros, Search(axes, x.rank, reads, None, hit, x.access, None))


@operator("Col2Im")
def _col2im(op: Op) -> Value:
    """Every pixel sums the elements of the blocks that cover it: block `(h + pad - r*dilation) / stride`, if an
    integer."""
    x = op.value(0)
    image, block = op.contents(1) or (), op.constants(2) or ()
    rank = len(image)
    pads = op.integers("pads") or (0,) * (2 * rank)
    if x.rank != 3 or not rank or len(block) != rank or len(pads) != 2 * rank:
        raise ShapeError(f"an input {shape_text(x.shape)}, an image {shape_text(image)} and a block {list(block)}")
    strides, dilations = per_dimension(op, "strides", rank), per_dimension(op, "dilations", rank)
    span = size_of([Const(k) for k in block])
    width = constant_value(span) or 0
    described = f"{text_of(x.shape[1])} channels of blocks {list(block)}"
    if width < 1:
        raise ShapeError(described)
    op.sizes.assume(divides(Const(width), x.shape[1]), described)
    channels = simplify(formula("c // n", c=x.shape[1], n=width))
    blocks: list[Expr] = [
        simplify(formula("(e + p - d * (k - 1) - 1) // s + 1", e=e, p=p, d=d, k=k, s=s))
        for e, p, d, k, s in zip(
            image, (pads[i] + pads[rank + i] for i in range(rank)), dilations, block, strides, strict=True
        )
    ]
    op.require_same(x.shape[2], size_of(blocks), f"the number of blocks {shape_text(blocks)}")
    axes = op.axes_of([x.shape[0], channels, *image])
    reads = op.builder.iterators([f"r{d}" for d in range(rank)], [Const(k) for k in block])
    taps: list[Expr] = [Const(0) if r.extent == Const(1) else r.var for r in reads]
    guards: list[Expr] = []
    at: list[Expr] = []
    for d in range(rank):
        offset = formula("h + p - r * d", h=axes[2 + d].var, p=pads[d], r=taps[d], d=dilations[d])
        index = formula("offset // s", offset=offset, s=strides[d])
        guards.append(formula("offset % s == 0", offset=offset, s=strides[d]))
        guards.append(formula("at >= 0 and at < size", at=index, size=blocks[d]))
        at.append(index)
    inside = reshape_index([span], [Const(k) for k in block], taps, sizes=op.sizes)[0]
    channel = formula("c * n + r", c=axes[1].var, n=width, r=inside)
    element = x.access([axes[0].var, channel, reshape_index([x.shape[2]], blocks, at, sizes=op.sizes)[0]])
    zero = Const(0.0 if TTYPES[x.ttype].kind == "float" else False if x.ttype == "bool" else 0)
    return op.emit(axes, guarded(guards, element, zero), x.ttype, reads)
