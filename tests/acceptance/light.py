"""The nine graphs of onnx's backend tests, as they are and with random weights in place of their constant fills."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.test
from importer.reference import onnxruntime
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]

FOLDER = Path(onnx.backend.test.__file__).parent / "data" / "light"
NAMES = tuple(sorted(path.stem.removeprefix("light_") for path in FOLDER.glob("*.onnx")))


def plain(name: str) -> Path:
    """The file in the installed package: every weight is filled with one number."""
    return FOLDER / f"light_{name}.onnx"


def randomised(name: str, folder: Path) -> Path:
    """A copy with random weights that keep the variance, and the logits (before the softmax) as a second output.

    The weights of the last product are scaled so that the logits have a spread of one.
    """
    model = onnx.load(str(plain(name)))
    graph = model.graph
    shapes = {t.name: tuple(int(n) for n in numpy_helper.to_array(t)) for t in graph.initializer if t.data_type == 7}
    fills = {n.output[0]: shapes[n.input[0]] for n in graph.node if n.op_type == "ConstantOfShape"}
    generator = np.random.default_rng(len(name))
    weights = {tensor: _drawn(graph, tensor, shape, generator) for tensor, shape in fills.items()}
    nodes = [n for n in graph.node if n.op_type != "ConstantOfShape"]
    del graph.node[:]
    graph.node.extend(nodes)
    softmax = [n for n in nodes if n.op_type == "Softmax"]
    logits = softmax[0].input[0] if softmax else graph.output[0].name
    if softmax:
        graph.output.append(helper.make_tensor_value_info(logits, TensorProto.FLOAT, None))
    graph.initializer.extend(numpy_helper.from_array(array, tensor) for tensor, array in weights.items())
    path = folder / f"{name}.onnx"
    onnx.save(model, str(path))
    spread = float(onnxruntime(path, image(path))[-1].std())
    producers = {output: n for n in nodes for output in n.output}
    last = producers[logits]
    while last.op_type not in ("Conv", "Gemm"):
        last = producers[last.input[0]]
    for tensor in graph.initializer:
        if tensor.name in last.input[1:]:
            tensor.CopyFrom(numpy_helper.from_array(weights[tensor.name] / np.float32(spread), tensor.name))
    onnx.save(model, str(path))
    return path


def image(path: Path, seed: int = 0, mean: float = 0.0) -> Mapping[str, Array]:
    """Random values for the inputs that are no weights."""
    graph = onnx.load(str(path)).graph
    known = {tensor.name for tensor in graph.initializer}
    generator = np.random.default_rng(seed)
    inputs = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in graph.input if i.name not in known}
    return {n: (generator.standard_normal(s) + mean).astype(np.float32) for n, s in inputs.items()}


def _drawn(graph: Any, tensor: str, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    """Weights scaled by fan-in, factors and variances around one, everything else around zero."""
    if len(shape) > 1:
        scale = sqrt(2.0 / prod(shape[1:]))
        return (scale * generator.standard_normal(shape)).astype(np.float32)
    if _is_factor(graph, tensor):
        return generator.uniform(0.5, 1.5, shape).astype(np.float32)
    return (0.1 * generator.standard_normal(shape)).astype(np.float32)


def _is_factor(graph: Any, tensor: str) -> bool:
    """Whether a vector is multiplied with, or a variance."""
    for node in graph.node:
        if tensor not in node.input:
            continue
        if node.op_type in ("Unsqueeze", "Reshape"):
            return _is_factor(graph, node.output[0])
        return node.op_type == "Mul" or (
            node.op_type == "BatchNormalization" and tensor in (node.input[1], node.input[4])
        )
    return False
