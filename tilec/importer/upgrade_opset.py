"""Upgrade of models older than the supported opsets to the first supported one, node by node.

Neither onnxruntime nor ONNX's reference evaluator has the older forms of operators.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper, shape_inference

from tilec.importer.check import OPSETS, OWN_DOMAINS, attributes_of, bodies, domain_of, opset_of, place_of
from tilec.importer.element_types import ELEMENT_TYPES
from tilec.importer.loader import Model, load_model
from tilec.importer.old_operators import OldNode, in_opset_7
from tilec.ir.node_labels import label

MAX_SHOWN_ELEMENTS = 64
"""Elements of constants up to which their values take part in shape inference: they may be shapes."""

_NUMBERS = {ttype: number for number, ttype in ELEMENT_TYPES.items()}


def modern(model: Model) -> Model:
    """The model unchanged or, when it is too old, in the terms of the first opset of `OPSETS`.

    Raises ConfigError for a node that breaks the rules of its opset, UnsupportedError for one that newer ones cannot
    express.
    """
    opset = opset_of(model.proto)
    if opset >= OPSETS.start:
        return model
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    for entry in proto.opset_import:
        if entry.domain in OWN_DOMAINS:
            entry.version = OPSETS.start
    known = {name: _info(name, each.ttype, each.shape) for name, each in model.initializers.items()}
    values = {name: each.array for name, each in model.initializers.items()}
    names = _names(proto.graph) | set(known)
    _upgrade(proto.graph, _Context(opset, model.file, tuple(proto.opset_import), names), known, values)
    return replace(model, proto=proto)


@contextmanager
def modern_file(path: Path) -> Iterator[Path]:
    """A model's file or, when the model is too old for onnxruntime, one of the same model in newer terms."""
    model = load_model(path)
    newer = modern(model)
    if newer is model:
        yield path
        return
    for name, each in model.initializers.items():
        newer.proto.graph.initializer.append(numpy_helper.from_array(np.asarray(each.array), name))
    newer.proto.graph.initializer.extend(model.foreign.values())
    with TemporaryDirectory(prefix="tilec-") as folder:
        onnx.save(newer.proto, str(Path(folder) / path.name))
        yield Path(folder) / path.name


class _Context:
    """What all nodes of a model share: its opset, its file, and the names that are taken."""

    def __init__(self, opset: int, file: str, domains: Sequence[Any], names: set[str]) -> None:
        self.opset = opset
        self.file = file
        self.domains = domains
        self._names = names

    def fresh(self, wanted: str) -> str:
        """A name that nothing has."""
        while wanted in self._names:
            wanted += "_"
        self._names.add(wanted)
        return wanted


class _Types:
    """Types of a graph's tensors, inferred in steps: of each stretch of nodes when the rank of a result is asked."""

    def __init__(self, known: Mapping[str, Any], values: Mapping[str, NDArray[Any]], domains: Sequence[Any]) -> None:
        self.known = dict(known)
        self.values = dict(values)
        self._domains = domains
        self._later: list[onnx.NodeProto] = []

    def add(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Nodes that follow."""
        for node in nodes:
            if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
                self.values[node.output[0]] = numpy_helper.to_array(node.attribute[0].t)
        self._later += nodes

    def rank(self, name: str) -> int | None:
        """The rank of a tensor, None where it is unknown."""
        if name not in self.known and self._later:
            self._infer()
        info = self.known.get(name)
        if info is None or not info.type.tensor_type.HasField("shape"):
            return None
        return len(info.type.tensor_type.shape.dim)

    def _infer(self) -> None:
        shown = {name: a for name, a in self.values.items() if a.size <= MAX_SHOWN_ELEMENTS and a.dtype == np.int64}
        tensors = [numpy_helper.from_array(array, name) for name, array in shown.items()]
        inputs = [*self.known.values(), *(_info(n, "i64", a.shape) for n, a in shown.items() if n not in self.known)]
        made = {name for node in self._later for name in node.output}
        inputs = [info for info in inputs if info.name not in made]
        tensors = [tensor for tensor in tensors if tensor.name not in made]
        graph = helper.make_graph(self._later, "nodes", inputs, [], tensors)
        model = helper.make_model(graph, opset_imports=self._domains, ir_version=4)
        self._later = []
        try:
            inferred = shape_inference.infer_shapes(model, data_prop=True)
        except (shape_inference.InferenceError, RuntimeError):
            return
        self.known.update((info.name, info) for info in inferred.graph.value_info)


def _upgrade(graph: Any, context: _Context, known: Mapping[str, Any], values: Mapping[str, NDArray[Any]]) -> None:
    """Put the nodes of a graph and of its bodies into the terms of the first supported opset."""
    infos = {info.name: info for info in (*graph.value_info, *graph.output, *graph.input)}
    own = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    shapes = {t.name: helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in graph.initializer}
    typed = {name: info for name, info in infos.items() if info.type.tensor_type.HasField("shape")}
    types = _Types({**known, **typed, **shapes}, {**values, **own}, context.domains)
    result: list[onnx.NodeProto] = []
    for number, node in enumerate(graph.node):
        node.name = label(node, number)
        for body in bodies(node):
            for name in _read(body):
                types.rank(name)
            _upgrade(body, context, types.known, types.values)
        nodes = [node]
        if not domain_of(node):
            place = place_of(context.file, node.name, node.op_type)
            attributes_of(node, context.opset, place)
            nodes = in_opset_7(OldNode(node, place, types.rank, types.values.get, context.fresh), context.opset)
        types.add(nodes)
        result += nodes
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in result]
    del graph.node[:]
    graph.node.extend(copies)


def _read(graph: Any) -> set[str]:
    return {name for node in graph.node for name in node.input}


def _names(graph: Any) -> set[str]:
    """The names of all tensors of a graph and of its bodies."""
    inner = (name for node in graph.node for body in bodies(node) for name in _names(body))
    ports = (*graph.input, *graph.output, *graph.initializer)
    return {each.name for each in ports} | {n for node in graph.node for n in (*node.input, *node.output)} | set(inner)


def _info(name: str, ttype: str, shape: Sequence[int]) -> Any:
    return helper.make_tensor_value_info(name, _NUMBERS[ttype], list(shape))
