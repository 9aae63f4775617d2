"""Transposed convolution in one to three dimensions, with groups, dilation and any padding.

With a stride s the outputs s*m + i of one phase i are a plain convolution with every s-th element of the kernel. So all
phases are computed as one convolution and then interleaved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilec.importer.builder import Axis
from tilec.importer.formula import formula
from tilec.importer.operator import Op
from tilec.importer.ops.convolution import biased, in_groups, kernel_of, require_channels, zero_of
from tilec.importer.ops.window import KERNEL, SPATIAL, guarded, per_dimension
from tilec.importer.registry import operator
from tilec.importer.shapes import ShapeError, shape_text
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Const, Expr, constant_value

PHASES = {1: ("j",), 2: ("i", "j"), 3: ("f", "i", "j")}
"""Iterators over the phases of the strides."""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Operands, and for each spatial dimension kernel, stride, dilation, padding before, extent of the
    result; `channels` are the input channels of one of the groups."""

    op: Op
    x: Value
    weight: Value
    kernel: tuple[Expr, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[Expr, ...]
    out: tuple[Expr, ...]
    group: int
    channels: Expr

    @property
    def outputs(self) -> Expr:
        """Number of output channels."""
        return simplify(formula("m * g", m=self.weight.shape[1], g=self.group))

    def axes(self) -> tuple[Axis, ...]:
        """Iterators over the result."""
        names = ("n", "o", *SPATIAL[len(self.kernel)])
        return self.op.builder.iterators(names, [self.x.shape[0], self.outputs, *self.out])

    def taps(self, kernel: Sequence[Expr]) -> tuple[Axis, ...]:
        """Iterators over a group's input channels and elements of the kernel."""
        return self.op.builder.iterators(("c", *KERNEL[len(kernel)]), [self.channels, *kernel])

    def grouped(self, o: Expr) -> tuple[Expr, Expr]:
        """The group of an output channel, and its number there."""
        if self.group == 1:
            return Const(0), o
        m = self.weight.shape[1]
        return formula("o // m", o=o, m=m), formula("o % m", o=o, m=m)

    def body(
        self, weight: Value, place: tuple[Expr, Expr, Expr], channel: Expr, index: Sequence[Expr], rows: Sequence[Expr]
    ) -> Expr:
        """`where(index lies inside, X[n, c, index], 0) * W[c, o, rows]` with the channels of a group; the place is n,
        the group and o."""
        n, group, column = place
        if self.group > 1:
            channel = formula("g * size + c", g=group, c=channel, size=self.channels)
        sizes = self.x.shape[2:]
        guards = [formula("at >= 0 and at < e", at=at, e=e) for at, e in zip(index, sizes, strict=True)]
        value = guarded(guards, self.x.access([n, channel, *index]), zero_of(self.x.ttype))
        return formula("x * w", x=value, w=weight.access([channel, column, *rows]))


@operator("ConvTranspose")
def _conv_transpose(op: Op) -> Value:
    """Every output sums the inputs whose windows cover it."""
    spread = _spread_of(op)
    dilated = any(s > 1 and d > 1 for s, d in zip(spread.strides, spread.dilations, strict=True))
    kernel = [extent for each in spread.kernel if (extent := constant_value(each)) is not None]
    plain = dilated or max(spread.strides) == 1 or len(kernel) < len(spread.kernel)
    total = _by_taps(spread) if plain else _by_phases(spread, kernel)
    return biased(op, total, op.optional(2))


def _spread_of(op: Op) -> Spread:
    x, weight = op.value(0), op.value(1)
    rank = x.rank - 2
    if rank not in SPATIAL or weight.rank != x.rank:
        raise ShapeError(f"an input {shape_text(x.shape)} and a weight {shape_text(weight.shape)}")
    kernel = kernel_of(op, weight)
    strides, dilations = per_dimension(op, "strides", rank), per_dimension(op, "dilations", rank)
    if min((*strides, *dilations, *(1 if (k := constant_value(each)) is None else k for each in kernel))) < 1:
        described = f"kernel {shape_text(kernel)}, strides {list(strides)}, dilations {list(dilations)}"
        raise op.invalid(described)
    for extent in kernel:
        op.sizes.demand(formula("k >= 1", k=extent), "a kernel has elements")
    before, out = _reach(op, x.shape[2:], kernel, strides, dilations)
    op.require_same(x.shape[1], weight.shape[0], f"channels of {shape_text(x.shape)} and {shape_text(weight.shape)}")
    group, channels = in_groups(op, weight.shape[0], "input")
    require_channels(op, channels)
    return Spread(op, x, weight, kernel, strides, dilations, tuple(before), tuple(out), group, channels)


def _by_taps(spread: Spread) -> Value:
    """Output h sums over every element r of the kernel, at `(h + pad - r*dilation) / stride` where that is an
    integer."""
    axes, reduce = spread.axes(), spread.taps(spread.kernel)
    batch, output, *places = axes
    place = (batch.var, *spread.grouped(output.var))
    m = spread.weight.shape[1]
    apart = spread.group > 1 and constant_value(m) is None
    if apart:
        # Quotients by a size would stand in the windows of operands; in a reshape of the result they are read as such.
        g, o = spread.op.builder.iterators(("g", "m"), [Const(spread.group), m])
        axes, place = (batch, g, o, *places), (batch.var, g.var, o.var)
    channel, *taps = _variables(reduce)
    whole: list[Expr] = []
    index: list[Expr] = []
    for d, stride in enumerate(spread.strides):
        step = {"h": places[d].var, "p": spread.before[d], "r": taps[d], "d": spread.dilations[d]}
        offset = formula("h + p - r * d", **step)
        whole.append(formula("offset % s == 0", offset=offset, s=stride))
        index.append(formula("offset // s", offset=offset, s=stride))
    body = guarded(whole, spread.body(spread.weight, place, channel, index, taps), zero_of(spread.x.ttype))
    if not apart:
        return spread.op.emit(axes, body, spread.x.ttype, reduce, part=_part(spread.op))
    total = spread.op.emit(axes, body, spread.x.ttype, reduce, part="groups")
    joined = total.access([batch.var, *spread.grouped(output.var), *(a.var for a in places)])
    return spread.op.emit([batch, output, *places], joined, spread.x.ttype, part=_part(spread.op))


def _by_phases(spread: Spread, kernel: Sequence[int]) -> Value:
    """`Z[n,o,i,m] = sum(c,q, X[n,c,m-q] * W[c,o,i+q*s])`, and output h is `Z[n, o, (h+pad) % s, (h+pad) // s]`."""
    op, strides, rank = spread.op, spread.strides, len(spread.kernel)
    first = [simplify(formula("p // s", p=p, s=s)) for p, s in zip(spread.before, strides, strict=True)]
    steps: list[dict[str, int | Expr]] = [
        {"p": p, "s": s, "first": f, "out": out}
        for p, s, f, out in zip(spread.before, strides, first, spread.out, strict=True)
    ]
    extents = [simplify(formula("(out - 1 + p) // s + 1 - first", **step)) for step in steps]
    phases = [min(k, s) for k, s in zip(kernel, strides, strict=True)]
    sizes = [spread.x.shape[0], spread.outputs, *map(Const, phases), *extents]
    axes = op.builder.iterators(("n", "o", *PHASES[rank], *SPATIAL[rank]), sizes)
    rounds = [-(-k // s) for k, s in zip(kernel, strides, strict=True)]
    reduce = spread.taps([Const(q) for q in rounds])
    channel, *taps = _variables(reduce)
    index: list[Expr] = []
    rows: list[Expr] = []
    for phase, place, q, d, step in zip(
        axes[2 : 2 + rank], axes[2 + rank :], taps, spread.dilations, steps, strict=True
    ):
        index.append(simplify(formula("m + first - q * d", m=place.var, q=q, d=d, **step)))
        rows.append(simplify(formula("i + q * s", i=phase.var, q=q, **step)))
    weight = _lengthened(spread, kernel, [max(k, q * p) for k, q, p in zip(kernel, rounds, phases, strict=True)])
    body = spread.body(weight, (axes[0].var, *spread.grouped(axes[1].var)), channel, index, rows)
    total = op.emit(axes, body, spread.x.ttype, reduce, part="phases")
    return _beside(spread, total, phases, steps)


def _beside(spread: Spread, total: Value, phases: Sequence[int], steps: Sequence[Mapping[str, int | Expr]]) -> Value:
    """The phases interleaved; 0 in those that a kernel shorter than the stride does not reach."""
    n, o, *places = spread.axes()
    outer = [simplify(formula("(h + p) % s", h=a.var, **step)) for a, step in zip(places, steps, strict=True)]
    inner = [formula("(h + p) // s - first", h=a.var, **step) for a, step in zip(places, steps, strict=True)]
    reached = [formula("i < k", i=i, k=k) for i, k, s in zip(outer, phases, spread.strides, strict=True) if k < s]
    body = guarded(reached, total.access([n.var, o.var, *outer, *inner]), zero_of(spread.x.ttype))
    return spread.op.emit([n, o, *places], body, spread.x.ttype, part=_part(spread.op))


def _variables(axes: Sequence[Axis]) -> list[Expr]:
    """The iterators, 0 for one over a single element."""
    return [Const(0) if a.extent == Const(1) else a.var for a in axes]


def _part(op: Op) -> str:
    return "" if op.optional(2) is None else "product"


def _lengthened(spread: Spread, kernel: Sequence[int], wanted: Sequence[int]) -> Value:
    """The weight padded with zeros to these kernel extents, so that every phase has as many elements."""
    if wanted == kernel:
        return spread.weight
    op, weight = spread.op, spread.weight
    axes = op.axes_of([*weight.shape[:2], *map(Const, wanted)])
    pairs = zip(axes[2:], kernel, wanted, strict=True)
    inside = [formula("r < k", r=a.var, k=k) for a, k, longer in pairs if longer > k]
    body = guarded(inside, weight.access([a.var for a in axes]), zero_of(weight.ttype))
    return op.emit(axes, body, weight.ttype, part="kernel")


def _reach(
    op: Op, sizes: tuple[Expr, ...], kernel: tuple[Expr, ...], strides: tuple[int, ...], dilations: tuple[int, ...]
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
            "(size - 1) * s + extra + (k - 1) * d + 1",
            size=sizes[d],
            s=strides[d],
            extra=extra[d],
            k=kernel[d],
            d=dilations[d],
        )
        if wanted is not None or mode in ("SAME_UPPER", "SAME_LOWER"):
            target = Const(wanted[-rank + d]) if wanted is not None else formula("e * s", e=sizes[d], s=strides[d])
            total = formula("maximum(reach - target, 0)", reach=reach, target=target)
            before.append(simplify(formula("t // 2" if mode == "SAME_UPPER" else "(t + 1) // 2", t=total)))
            # The reference does not extend the output for `auto_pad`, contrary to ONNX's definition.
            out.append(simplify(target if wanted is not None else formula("r - t", r=reach, t=total)))
        elif mode in ("NOTSET", "", "VALID"):
            ends = (pads[d], pads[rank + d]) if mode != "VALID" else (0, 0)
            before.append(Const(ends[0]))
            out.append(simplify(formula("reach - p", reach=reach, p=sum(ends))))
        else:
            raise op.invalid(f"auto_pad is {mode!r}", "It must be NOTSET, SAME_UPPER, SAME_LOWER or VALID.")
    return before, out
