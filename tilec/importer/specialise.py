"""Specialisation of ONNX models: open extents fixed, inputs turned into constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from tilec.importer.check import needs

_INITIALIZERS_APART = 4
"""The first IR version in which an initializer need not be an input."""


def frozen(model: onnx.ModelProto, values: Mapping[str, NDArray[Any]]) -> onnx.ModelProto:
    """A copy of a model in which these inputs are constants.

    For inputs that determine shapes, axes or branches and that import would have to know (`needed` of
    `UnsupportedModelError`). Names that are no inputs are ignored.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    known = {tensor.name for tensor in graph.initializer}
    names = [info.name for info in graph.input if info.name in values and info.name not in known]
    graph.initializer.extend(numpy_helper.from_array(values[name], name) for name in names)
    if copy.ir_version >= _INITIALIZERS_APART:
        remaining = [info for info in graph.input if info.name not in names]
        del graph.input[:]
        graph.input.extend(remaining)
    return copy


def chosen(model: onnx.ModelProto, values: Mapping[str, NDArray[Any]]) -> onnx.ModelProto:
    """A copy of a model in which these inputs, conditions of Ifs, are constants.

    Inputs that nothing reads then have sizes of their own: what their shapes have in common with others holds in the
    branch that is not taken.
    """
    copy = frozen(model, values)
    read = {name for node in copy.graph.node for name in _read(node, values)}
    read |= {info.name for info in copy.graph.output}
    for info in copy.graph.input:
        if info.name not in read:
            for dim in info.type.tensor_type.shape.dim:
                dim.ClearField("dim_param")
    return copy


def _read(node: Any, values: Mapping[str, NDArray[Any]]) -> Iterator[str]:
    """Names of the tensors that a node reads, an If in the branch that is taken."""
    if node.op_type == "If" and node.input[0] in values:
        taken = "then_branch" if values[node.input[0]].item() else "else_branch"
        (branch,) = (attribute for attribute in node.attribute if attribute.name == taken)
        node = onnx.NodeProto(op_type=node.op_type, input=node.input, attribute=[branch])
    return needs(node)


def open_inputs(model: onnx.ModelProto) -> tuple[str, ...]:
    """The tensor inputs whose shape the model leaves open, in part or as a whole."""
    known = {tensor.name for tensor in model.graph.initializer}
    return tuple(
        info.name
        for info in model.graph.input
        if info.name not in known and info.type.HasField("tensor_type") and _is_open(info.type.tensor_type)
    )


def shaped(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> onnx.ModelProto:
    """A copy of a model with these extents where its inputs leave them open; fixed extents are unchanged."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for info in copy.graph.input:
        shape = shapes.get(info.name)
        if shape is None or not info.type.HasField("tensor_type"):
            continue
        tensor = info.type.tensor_type
        if not tensor.HasField("shape"):
            tensor.shape.SetInParent()
            for _ in shape:
                tensor.shape.dim.add()
        for dim, extent in zip(tensor.shape.dim, shape, strict=False):
            if _open_extent(dim):
                dim.dim_value = extent
    return copy


def _is_open(tensor: Any) -> bool:
    return not tensor.HasField("shape") or any(_open_extent(dim) for dim in tensor.shape.dim)


def _open_extent(dim: Any) -> bool:
    return not dim.HasField("dim_value") or dim.dim_value < 0
