"""Operators of opsets before 7 in the terms of opset 7, one rule for each form that differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from tilec.errors import UnsupportedError

EXPORT_ANEW = "Export the model again for opset 7 or later."


@dataclass(frozen=True)
class OldNode:
    """A node of an old opset: a copy that rules change, and what can be known of the tensors that it reads.

    `rank` and `values` return None for a tensor of unknown rank, or that is no constant; `fresh` takes a name.
    """

    proto: onnx.NodeProto
    place: str
    rank: Callable[[str], int | None]
    values: Callable[[str], NDArray[Any] | None]
    fresh: Callable[[str], str]

    def take(self, name: str, default: Any = None) -> Any:
        """An attribute's value, or the default; the node has it no more."""
        for number, attribute in enumerate(self.proto.attribute):
            if attribute.name == name:
                value = helper.get_attribute_value(attribute)
                del self.proto.attribute[number]
                return value
        return default

    def give(self, name: str, value: Any) -> None:
        """Set an attribute."""
        self.take(name)
        self.proto.attribute.append(helper.make_attribute(name, value))

    def require_rank(self, name: str) -> int:
        """The rank of an input. Raises UnsupportedError where it is not known."""
        rank = self.rank(name)
        if rank is None:
            hint = f"Give {name!r} a shape with onnx.shape_inference.infer_shapes, or {_lower(EXPORT_ANEW)}"
            raise self.refused(f"before opset 7 its result depends on the rank of {name!r}, which is unknown", hint)
        return rank

    def constant(self, name: str) -> NDArray[Any]:
        """The values of an input. Raises UnsupportedError where it is no constant."""
        values = self.values(name)
        if values is None:
            raise self.refused(f"its input {name!r} is computed; opset 7 takes constants there")
        return values

    def refused(self, message: str, hint: str = EXPORT_ANEW) -> UnsupportedError:
        """The error for a form that opset 7 has not."""
        return UnsupportedError(message, self.place, hint)

    def added(self, what: str, values: NDArray[Any]) -> onnx.NodeProto:
        """A node before this one that makes a constant."""
        name = self.fresh(f"{self.proto.name}/{what}")
        return helper.make_node("Constant", [], [name], name, value=numpy_helper.from_array(values, name))

    def unsqueezed(self, number: int, axes: Sequence[int]) -> onnx.NodeProto:
        """A node before this one, which reads its result in place of an input."""
        name = self.fresh(f"{self.proto.name}/{self.proto.input[number]}")
        node = helper.make_node("Unsqueeze", [self.proto.input[number]], [name], name, axes=list(axes))
        self.proto.input[number] = name
        return node


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


Rule = Callable[[OldNode], Sequence[onnx.NodeProto]]
"""Changes a node, and returns those that are to stand before it."""


def _broadcast(node: OldNode) -> Sequence[onnx.NodeProto]:
    """The second operand's axes lie at `axis` and behind it, or are the last ones."""
    broadcast, axis = node.take("broadcast", 0), node.take("axis")
    if not broadcast or axis is None or len(node.proto.input) != 2:
        return ()
    rank, own = (node.require_rank(name) for name in node.proto.input)
    first = axis + rank if axis < 0 else axis
    if not 0 <= first <= rank - own:
        raise node.refused(f"an operand of rank {own} does not fit at axis {axis} of one of rank {rank}")
    behind = rank - own - first
    return [node.unsqueezed(1, range(own, own + behind))] if behind else ()


def _prelu(node: OldNode) -> Sequence[onnx.NodeProto]:
    """Slopes of one axis are those of the channels."""
    rank, own = (node.require_rank(name) for name in node.proto.input)
    return [node.unsqueezed(1, range(1, rank - 1))] if own == 1 and rank > 2 else ()


def _inference(node: OldNode) -> Sequence[onnx.NodeProto]:
    """What has one output and does not ask for training computes as in inference."""
    if node.take("is_test", 1) == 0:
        raise node.refused("is_test is 0: it asks for training, which tilec does not do", "Set is_test to 1.")
    return ()


def _cast(node: OldNode) -> Sequence[onnx.NodeProto]:
    to = node.take("to", b"").decode(errors="replace")
    if to not in onnx.TensorProto.DataType.keys():  # noqa: SIM118
        raise node.refused(f"to is {to!r}, which is no element type of ONNX")
    node.give("to", onnx.TensorProto.DataType.Value(to))
    return ()


def _clip(node: OldNode) -> Sequence[onnx.NodeProto]:
    node.give("min", node.take("min", -np.inf))
    node.give("max", node.take("max", np.inf))
    return ()


def _concat(node: OldNode) -> Sequence[onnx.NodeProto]:
    node.give("axis", node.take("axis", 1))
    return ()


def _norm_pool(node: OldNode) -> Sequence[onnx.NodeProto]:
    power = node.take("p", 2.0)
    if power != int(power):
        raise node.refused(f"p is {power:g}; from opset 2 on it is an integer")
    node.give("p", int(power))
    return ()


def _pad(node: OldNode) -> Sequence[onnx.NodeProto]:
    node.give("pads", node.take("paddings", ()))
    return ()


def _reshape(node: OldNode) -> Sequence[onnx.NodeProto]:
    extents = node.take("shape")
    if extents is None:
        raise node.refused("the attribute 'shape' is missing")
    shape = node.added("shape", np.array(extents, np.int64))
    node.proto.input.append(shape.output[0])
    return [shape]


def _selu(node: OldNode) -> Sequence[onnx.NodeProto]:
    node.give("alpha", node.take("alpha", 1.6732))
    node.give("gamma", node.take("gamma", 1.0507))
    return ()


def _split(node: OldNode) -> Sequence[onnx.NodeProto]:
    """The lengths may be an input."""
    if len(node.proto.input) > 1:
        lengths = node.constant(node.proto.input[1])
        del node.proto.input[1:]
        node.give("split", [int(each) for each in lengths.ravel()])
    return ()


def _tile(node: OldNode) -> Sequence[onnx.NodeProto]:
    """One axis is repeated."""
    data, tiles, axis = node.proto.input
    repeats = np.ones(node.require_rank(data), np.int64)
    repeats[int(node.constant(axis).ravel()[0])] = int(node.constant(tiles).ravel()[0])
    every = node.added("repeats", repeats)
    node.proto.input[:] = [data, every.output[0]]
    return [every]


def _upsample(node: OldNode) -> Sequence[onnx.NodeProto]:
    node.give("scales", [1.0, 1.0, node.take("height_scale", 1.0), node.take("width_scale", 1.0)])
    return ()


def _without(*names: str) -> Rule:
    """Attributes that mean nothing to one who runs a model."""

    def drop(node: OldNode) -> Sequence[onnx.NodeProto]:
        for name in names:
            node.take(name)
        return ()

    return drop


RULES: dict[str, tuple[int, Rule]] = {
    **dict.fromkeys(
        ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"), (7, _broadcast)
    ),
    **dict.fromkeys(("BatchNormalization", "Dropout"), (7, _inference)),
    **dict.fromkeys(("RNN", "LSTM", "GRU"), (7, _without("output_sequence"))),
    **dict.fromkeys(("LpPool", "GlobalLpPool"), (2, _norm_pool)),
    "Cast": (6, _cast),
    "Clip": (6, _clip),
    "Concat": (4, _concat),
    "Gemm": (7, _without("broadcast")),
    "PRelu": (7, _prelu),
    "Pad": (2, _pad),
    "Reshape": (5, _reshape),
    "Selu": (6, _selu),
    "Split": (2, _split),
    "Tile": (6, _tile),
    "Upsample": (7, _upsample),
}
"""Operator -> the opset from which on it has the form of opset 7, and the rule for older forms."""


def in_opset_7(node: OldNode, opset: int) -> list[onnx.NodeProto]:
    """A node, and what has to stand before it. Raises UnsupportedError for a form that opset 7 has not."""
    if opset < 6:
        node.take("consumed_inputs")
    since, rule = RULES.get(node.proto.op_type, (0, _without()))
    before = rule(node) if opset < since else ()
    return [*before, node.proto]
