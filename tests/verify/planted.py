"""Planted miscompiles: plans that compute something else than they say, and small models in f32, f16 and int8."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import inf, nan
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from quantised.test_few_bits import written

from tilec.ir.expr import Access, Binary, Call, Const, Expr, Reduce, Var, constant_value, rebuild, substitute, variables
from tilec.ir.graph import Node
from tilec.ir.plan import Plan
from tilec.ir.scalars import fits, type_of
from tilec.ir.types import TTYPES, is_float

Fault = Callable[[Expr, Node], Expr | None]
"""(value of a node, node) -> wrong value; None where the fault does not apply."""


def planted(plan: Plan, fault: Fault) -> Iterator[Plan]:
    """The plan with the fault in one node after another, the last one first, where its type can hold the value."""
    ttypes = {name: tensor.ttype for name, tensor in plan.tensors.items()}
    for at, group in reversed(list(enumerate(plan.groups))):
        for number, node in reversed(list(enumerate(group.nodes))):
            value = fault(node.expr.value, node)
            if value is None or value == node.expr.value or not _holds(ttypes[node.name], value, ttypes):
                continue
            body = replace(node.expr.body, body=value) if isinstance(node.expr.body, Reduce) else value
            wrong = replace(node, expr=replace(node.expr, body=body))
            nodes = (*group.nodes[:number], wrong, *group.nodes[number + 1 :])
            yield replace(plan, groups=(*plan.groups[:at], replace(group, nodes=nodes), *plan.groups[at + 1 :]))


def _holds(ttype: str, value: Expr, ttypes: Mapping[str, str]) -> bool:
    """Whether a tensor of this type holds the value; all floating-point types hold each other's."""
    try:
        kind = type_of(value, ttypes)
    except TypeError:
        return False
    return fits(kind, ttype) or (is_float(ttype) and kind in TTYPES and is_float(kind))


def swallows_nan(name: str) -> Fault:
    """The node of this name computes 0 where it should compute NaN."""

    def fault(value: Expr, node: Node) -> Expr | None:
        return Call("where", (Call("isnan", (value,)), Const(0.0), value)) if node.name == name else None

    return fault


def _last(node: Node) -> Expr:
    """Whether an element is the last one along the innermost dimension."""
    name = node.expr.spatial[-1]
    return Binary("==", Var(name), Binary("-", node.expr.domain[name], Const(1)))


def _lane(node: Node) -> Expr:
    return Binary("==", Binary("%", Var(node.expr.spatial[-1]), Const(4)), Const(1))


def _where(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return Call("where", (condition, yes, no))


def _every(change: Callable[[Expr], Expr]) -> Fault:
    """`change` at every part of the value outside of indices."""

    def fault(value: Expr, _node: Node) -> Expr:
        def walk(part: Expr) -> Expr:
            new = part if isinstance(part, Access) else rebuild(part, walk)
            return change(new)

        return walk(value)

    return fault


def _constants(factor: float) -> Fault:
    def change(part: Expr) -> Expr:
        known = isinstance(part, Const) and isinstance(part.value, float) and part.value not in (0.0, inf, -inf)
        return Const(part.value * factor) if known else part

    return _every(change)


def _replaced(old: tuple[str, ...], new: Callable[[tuple[Expr, ...]], Expr]) -> Fault:
    return _every(lambda part: new(part.args) if isinstance(part, Call) and part.fn in old else part)


def _swapped(part: Expr) -> Expr:
    return replace(part, left=part.right, right=part.left) if isinstance(part, Binary) and part.op in "-/" else part


def _bare(value: Expr, node: Node) -> Expr | None:
    """One lane without the outermost function."""
    if isinstance(value, Call) and value.fn in ("maximum", "minimum", "tanh", "exp", "sqrt", "erf", "sigmoid", "where"):
        return _where(_lane(node), value.args[-1], value)
    return None


def _neighbour(value: Expr, node: Node) -> Expr | None:
    """Operands read one element too far along the innermost dimension, around its end."""
    name = node.expr.spatial[-1]
    extent = node.expr.domain[name]
    if constant_value(extent) in (0, 1):
        return None

    def moved(part: Expr) -> Expr:
        if part == Var(name):
            return Binary("%", Binary("+", part, Const(1)), extent)
        return rebuild(part, moved)

    return moved(value)


def _fewer(value: Expr, node: Node) -> Expr | None:
    """The last term of a reduction left out."""
    if node.expr.reducer != "sum":
        return None
    name = node.expr.reduce[-1]
    last = Binary("==", Var(name), Binary("-", node.expr.domain[name], Const(1)))
    return _where(last, _zero(value, node), value)


def _zero(value: Expr, _node: Node) -> Expr:
    return Binary("-", value, value)


def _nibbles(part: Expr) -> Expr:
    """Codes of 4 bits read from the other half of their byte."""
    match part:
        case Call("bitand", (Call("shr", (word, place)), Const(15))) if not isinstance(place, Const):
            return replace(part, args=(Call("shr", (word, Call("bitxor", (place, Const(4))))), Const(15)))
    return part


def _other_zero(part: Expr) -> Expr:
    """Codes moved by one more than their zero point."""
    if isinstance(part, Binary) and part.op == "-" and isinstance(part.left, Call) and part.left.fn == "i32":
        return replace(part, right=Binary("+", part.right, Const(1)))
    return part


def _other_scale(value: Expr, node: Node) -> Expr | None:
    """What all elements of a group share taken from the next group, around the end."""
    if len(node.expr.reduce) < 2:
        return None
    group, *inside = node.expr.reduce
    following = Binary("%", Binary("+", Var(group), Const(1)), node.expr.domain[group])

    def moved(part: Expr) -> Expr:
        if isinstance(part, Access):
            shared = group in variables(part) and not variables(part) & set(inside)
            return substitute(part, {group: following}) if shared else part
        return rebuild(part, moved)

    return moved(value)


FAULTS: dict[str, Fault] = {
    "scaled by a thousandth": lambda value, _: Binary("*", value, Const(1.001)),
    "a constant off by a thousandth": _constants(1.001),
    "a constant off by a percent": _constants(0.99),
    "doubled": lambda value, _: Binary("+", value, value),
    "negated": lambda value, _: Binary("-", _zero(value, _), value),
    "all zero": _zero,
    "tail dropped": lambda value, node: _where(_last(node), _zero(value, node), value),
    "tail doubled": lambda value, node: _where(_last(node), Binary("+", value, value), value),
    "one lane zero": lambda value, node: _where(_lane(node), _zero(value, node), value),
    "one lane off by a percent": lambda value, node: _where(_lane(node), Binary("*", value, Const(1.01)), value),
    "hidden NaN": lambda value, node: _where(_last(node), Binary("*", value, Const(nan)), value),
    "hidden infinity": lambda value, node: _where(_last(node), Binary("/", value, Const(0.0)), value),
    "reads a neighbour": _neighbour,
    "one term fewer": _fewer,
    "operands swapped": _every(_swapped),
    "one lane without its function": _bare,
    "rounds down": _replaced(("round",), lambda args: Call("floor", args)),
    "rounds halves up": _replaced(("round",), lambda args: Call("floor", (Binary("+", args[0], Const(0.5)),))),
    "rounds up": _replaced(("round",), lambda args: Call("ceil", args)),
    "rounds to bf16 on the way": lambda value, _: Call("f32", (Call("bf16", (Call("f32", (value,)),)),)),
    "maximum for minimum": _replaced(("maximum",), lambda args: Call("minimum", args)),
    "minimum for maximum": _replaced(("minimum",), lambda args: Call("maximum", args)),
    "absolute value": lambda value, _: Call("abs", (value,)),
    "never negative": lambda value, _: Call("maximum", (value, _zero(value, _))),
    "nibbles in another order": _every(_nibbles),
    "another zero point": _every(_other_zero),
    "the scale of the next group": _other_scale,
    "off by one": lambda value, _: Binary("+", value, Const(1)),
}


def models(folder: Path) -> Iterator[tuple[str, Path]]:
    """(name, ONNX file): two models in f32, two in f16, two in int8, one with weights of 4 bits in blocks."""
    for name, ttype, build in (
        ("mlp-f32", np.float32, _mlp),
        ("attention-f32", np.float32, _attention),
        ("conv-f16", np.float16, _conv),
        ("norm-f16", np.float16, _norm),
        ("conv-int8", np.float32, lambda w: _conv(w, quantised=True)),
        ("mlp-int8", np.float32, lambda w: _mlp(w, quantised=True)),
    ):
        path = folder / f"{name}.onnx"
        _Writer(ttype).save(build, path)
        yield name, path
    yield "blocks-u4", _blocks(folder / "blocks-u4.onnx")


def _blocks(path: Path) -> Path:
    """A product with weights of 4 bits in blocks of 32, each with a scale and a zero point."""
    draw = np.random.default_rng(6)
    arrays = {
        "q": draw.integers(0, 16, (128, 24)).astype(ml_dtypes.uint4),
        "s": draw.uniform(0.01, 0.05, (4, 24)).astype(np.float32),
        "z": draw.integers(0, 15, (4, 24)).astype(ml_dtypes.uint4),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=0, block_size=32),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    return written(path, nodes, arrays, {"x": (TensorProto.FLOAT, [2, 128]), "y": (TensorProto.FLOAT, [2, 24])})


class _Writer:
    """Nodes and random weights of one model."""

    def __init__(self, dtype: type) -> None:
        self.dtype = dtype
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.generator = np.random.default_rng(0)

    def weight(self, *shape: int) -> str:
        return self.constant((self.generator.standard_normal(shape) / 3).astype(self.dtype))

    def constant(self, array: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def __call__(self, op: str, *inputs: str, **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, **attributes))
        return name

    def quantised(self, value: str, scale: float = 0.0625) -> str:
        step, zero = self.constant(np.float32(scale)), self.constant(np.uint8(120))
        return self("DequantizeLinear", self("QuantizeLinear", value, step, zero), step, zero)

    def save(self, build: Callable[[_Writer], tuple[tuple[int, ...], str]], path: Path) -> None:
        shape, output = build(self)
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        graph = helper.make_graph(
            self.nodes,
            "planted",
            [helper.make_tensor_value_info("x", kind, shape)],
            [helper.make_tensor_value_info(output, TensorProto.UNDEFINED, None)],
            self.weights,
        )
        graph.output[0].CopyFrom(onnx.ValueInfoProto(name=output))
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), str(path))


def _mlp(w: _Writer, quantised: bool = False) -> tuple[tuple[int, ...], str]:
    around = w.quantised if quantised else str
    hidden = w("Relu", w("Add", w("MatMul", around("x"), around(w.weight(20, 24))), w.weight(24)))
    bounded = w("Clip", w("Sub", w.weight(24), hidden), "", w.constant(np.array(4, w.dtype)))
    return (5, 20), around(w("Tanh", w("MatMul", around(bounded), around(w.weight(24, 12)))))


def _attention(w: _Writer) -> tuple[tuple[int, ...], str]:
    scores = w("Div", w("MatMul", "x", w.weight(16, 12)), w.constant(np.array(3, w.dtype)))
    return (6, 16), w("Min", w("MatMul", w("Softmax", scores, axis=-1), w.weight(12, 8)), w.weight(8))


def _conv(w: _Writer, quantised: bool = False) -> tuple[tuple[int, ...], str]:
    around = w.quantised if quantised else str
    first = w("Relu", w("Conv", around("x"), around(w.weight(8, 3, 3, 3)), pads=[1] * 4))
    second = w("Clip", w("Conv", around(first), around(w.weight(8, 8, 1, 1))), "", w.constant(np.array(6, w.dtype)))
    return (1, 3, 9, 9), around(w("Sub", second, first))


def _norm(w: _Writer) -> tuple[tuple[int, ...], str]:
    normal = w("LayerNormalization", "x", w.weight(24), w.weight(24), axis=-1)
    gelu = w("Mul", w("MatMul", normal, w.weight(24, 16)), w("Sigmoid", w("MatMul", normal, w.weight(24, 16))))
    return (7, 24), w("Max", w("Clip", gelu, "", w.constant(np.array(2, w.dtype))), w.weight(16))
