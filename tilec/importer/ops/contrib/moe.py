"""MoE and QMoE: a mixture of experts, of which each token takes the few that its router scores highest.

The weights that a token reads are those of its experts: what the router says is an index into them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilec.importer.compose import applied, every_result
from tilec.importer.formula import formula
from tilec.importer.names import REDUCED
from tilec.importer.operator import Op
from tilec.importer.ops.contrib.attention import refuse
from tilec.importer.ops.contrib.packed_elements import WIDTHS, in_single, packed_element
from tilec.importer.ops.gather import looked_up
from tilec.importer.ops.movement import reshaped
from tilec.importer.registry import CONTRIB, operator
from tilec.importer.shapes import ShapeError, shape_text, size_of
from tilec.importer.value import Value
from tilec.ir.expr import Const, Expr

Place = tuple[Expr, Expr, Expr]


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of every expert: `element` is its weight in f32 for an expert, a row and a column."""

    element: Callable[[Place], Expr]
    rows: Expr
    columns: Expr
    bias: Value | None


@operator("MoE", domain=CONTRIB)
def _moe(op: Op) -> Value:
    layers = [_plain(op.optional(2 + 2 * n), op.optional(3 + 2 * n)) for n in range(3)]
    return _mixed(op, layers)


@operator("QMoE", domain=CONTRIB)
def _quantised_moe(op: Op) -> Value:
    """Weights are integers in rows or blocks along their columns, each with a scale and zero point."""
    if op.text("quant_type", "int") != "int" or op.integer("weights_prepacked", -1) == 1:
        raise op.unsupported("weights that are no integers, or in the order of a GPU's kernels")
    if any(op.optional(n) is not None for n in range(14, 21)):
        raise op.unsupported("weights of experts apart from their scores, or scales of activations")
    return _mixed(op, [_packed(op, n) for n in range(3)])


def _plain(weight: Value | None, bias: Value | None) -> Layer | None:
    if weight is None:
        return None
    if weight.rank != 3:
        raise ShapeError(f"a weight {shape_text(weight.shape)}, not [experts, rows, columns]")
    return Layer(lambda place: in_single(weight, place), weight.shape[1], weight.shape[2], bias)


def _packed(op: Op, number: int) -> Layer | None:
    weight, scales = op.optional(2 + 3 * number), op.optional(3 + 3 * number)
    if weight is None or scales is None:
        return None
    bits = op.integer(f"fc{number + 1}_expert_weight_bits") or op.integer("expert_weight_bits", 4)
    block, zeros = op.integer("block_size"), op.optional(11 + number)
    if bits not in WIDTHS:
        raise op.unsupported(f"elements of {bits} bits", f"Elements of {', '.join(map(str, WIDTHS))} bits are.")
    experts, rows, width = (op.fixed(extent, "elements of experts") for extent in weight.shape)
    columns = width * 8 // bits
    blocks = -(-columns // block) if block > 0 else 1
    expected = [Const(experts), Const(rows), *([Const(blocks)] if block > 0 else [])]
    if len(expected) != scales.rank:
        raise ShapeError(f"scales {shape_text(scales.shape)} of weights {shape_text(weight.shape)}")
    for given, wanted in zip(scales.shape, expected, strict=True):
        op.require_same(given, wanted, "scales of blocks of weights")

    def element(place: Place) -> Expr:
        expert, row, column = place
        whole = formula("e * n + r", e=expert, n=rows, r=row)
        of_block = [formula("c // b", c=column, b=block)] if block > 0 else []
        code = packed_element(op, weight, (experts * rows, columns), (whole, column), bits)
        zero: Expr = Const(1 << (bits - 1))
        if zeros is not None and block > 0:
            zero = packed_element(op, zeros, (experts * rows, blocks), (whole, of_block[0]), bits)
        elif zeros is not None:
            zero = packed_element(op, zeros, (experts, rows), (expert, row), bits)
        return formula("f32(q - z) * s", q=code, z=zero, s=in_single(scales, [expert, row, *of_block]))

    return Layer(element, Const(rows), Const(columns), op.optional(4 + 3 * number))


def _mixed(op: Op, layers: Sequence[Layer | None]) -> Value:
    """The sum over the chosen experts of their results, by their share of the scores."""
    first, second, third = layers
    if first is None or second is None:
        raise op.invalid("experts without weights")
    refuse(op, {"use_sparse_mixer": 0, "swiglu_limit_after_activation": 0})
    x, router = op.value(0), op.value(1)
    tokens = size_of(x.shape[:-1])
    flat = reshaped(op, x, (tokens, x.shape[-1]), part="tokens")
    scores = reshaped(op, router, (tokens, router.shape[-1]), part="scores")
    shares = applied(op, "Softmax", scores, part="shares", axis=-1)
    share, expert = every_result(op, "TopK", shares, part="chosen", results=2, k=op.integer("k", 1), axis=-1)
    if op.integer("normalize_routing_weights"):
        total = op.reduce("sum", (1,), x=share, part="share_sum")
        share = op.map("x / s", x=share, s=total, part="share")
    gated = None if third is None else _layer(op, flat, expert, third, "fc3")
    inner = _activated(op, _layer(op, flat, expert, first, "fc1"), gated)
    result = _layer(op, inner, expert, second, "fc2")
    axes = op.axes_of((tokens, second.rows))
    (choice,) = op.builder.iterators(REDUCED, (expert.shape[1],))
    t, m = (axis.var for axis in axes)
    body = formula("w * x", w=in_single(share, (t, choice.var)), x=result.access((t, choice.var, m)))
    mixed = op.emit(axes, body, "f32", [choice], part="mixed")
    return reshaped(op, mixed if x.ttype == "f32" else op.map(f"{x.ttype}(x)", x=mixed, part="rounded"), x.shape)


def _layer(op: Op, x: Value, expert: Value, layer: Layer, part: str) -> Value:
    """`[t, choice, rows]` in f32: tokens `[t, columns]` or `[t, choice, columns]` times weights of chosen experts."""
    op.require_same(x.shape[-1], layer.columns, f"channels of tokens and columns of {part}")
    axes = op.axes_of((*expert.shape, layer.rows))
    t, choice, row = (axis.var for axis in axes)
    (column,) = op.builder.iterators(REDUCED, (layer.columns,))
    experts = op.value(1).shape[-1]
    chosen = looked_up(op, expert.access((t, choice)), "i64", experts)
    place = (t, column.var) if x.rank == 2 else (t, choice, column.var)
    body = formula("x * w", x=in_single(x, place), w=layer.element((chosen, row, column.var)))
    result = op.emit(axes, body, "f32", [column], part=part)
    if layer.bias is None:
        return result
    body = formula("x + b", x=result.access((t, choice, row)), b=in_single(layer.bias, (chosen, row)))
    return op.emit(axes, body, "f32", part=f"{part}_biased")


def _activated(op: Op, x: Value, gated: Value | None) -> Value:
    """The activation, times a further layer if there is one; gates and what they are for may be beside each other."""
    kind, fusion = op.text("activation_type", "relu"), op.integer("swiglu_fusion")
    bodies = {
        "relu": "maximum(x, 0.0)",
        "gelu": "x * 0.5 * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))",
        "silu": "x * sigmoid(x)",
        "identity": "x",
    }
    if kind != "swiglu":
        if kind not in bodies:
            raise op.unsupported(f"the activation {kind!r}")
        active = op.map(bodies[kind], x=x, part="active")
        return active if gated is None else op.map("x * y", x=active, y=gated, part="gated")
    if fusion == 0 and gated is None:
        raise op.invalid("swiglu without a layer beside its gates")
    half = x.shape[-1] if fusion == 0 else op.divided(x.shape[-1], 2, "gates and values")
    axes = op.axes_of((*x.shape[:-1], half))
    t, choice, i = (axis.var for axis in axes)
    at = {0: ("i", "i"), 1: ("2 * i", "2 * i + 1"), 2: ("i", "i + h")}[fusion]
    gate_at, value_at = (formula(text, i=i, h=half) for text in at)
    source = x if gated is None or fusion else gated
    gate: Expr = x.access((t, choice, gate_at))
    value: Expr = source.access((t, choice, value_at))
    limit = op.number("swiglu_limit")
    if limit:
        gate = formula("minimum(x, l)", x=gate, l=limit)
        value = formula("maximum(minimum(x, l), m)", x=value, l=limit, m=-limit)
    text = "g * sigmoid(g * alpha) * (v + beta)"
    alpha, beta = op.number("activation_alpha", 1.0), op.number("activation_beta")
    return op.emit(axes, formula(text, g=gate, v=value, alpha=alpha, beta=beta), "f32", part="active")
