"""Stand-alone parts of an ONNX model: some of its nodes, with the results of the others as inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.external_data_helper import load_external_data_for_tensor

from tilec.errors import TilecError
from tilec.ir.node_labels import label
from tilec.verify.inputs import Array

Values = Callable[[Sequence[str]], Mapping[str, Any]]
"""The values of tensors of the model by name; only tensors are arrays, sequences and maps are not."""

EXTERNAL_FROM = 1 << 30
"""Bytes of weights above which they go into a separate file: one protobuf message holds 2 GiB at most."""


@dataclass(frozen=True)
class Part:
    """A model and the inputs of its trial."""

    proto: ModelProto
    feeds: Mapping[str, Array]


@dataclass(frozen=True)
class Choice:
    """Some nodes of a model, by position, and tensors that must be outputs besides those that none of the nodes
    reads."""

    nodes: tuple[int, ...]
    kept: frozenset[str] = frozenset()


class Whole:
    """A model to take parts from. `folder` holds its external data; `values` provides the tensors where parts are
    cut."""

    def __init__(self, proto: ModelProto, values: Values, folder: Path | None = None) -> None:
        self.proto = proto
        self.nodes: tuple[NodeProto, ...] = tuple(proto.graph.node)
        self._values = values
        self._folder = folder
        self._reads = [tuple(dict.fromkeys(_read(node))) for node in self.nodes]
        self._weights = {tensor.name: tensor for tensor in proto.graph.initializer}
        self._sparse = {tensor.values.name: tensor for tensor in proto.graph.sparse_initializer}
        self._outputs = frozenset(port.name for port in proto.graph.output)

    @property
    def all(self) -> Choice:
        """All nodes and outputs."""
        return Choice(tuple(range(len(self.nodes))), self._outputs)

    def named(self, names: Collection[str]) -> Choice:
        """The nodes of these labels, the nodes between them, and as outputs all results that other nodes read."""
        chosen = {i for i, node in enumerate(self.nodes) if label(node, i) in names}
        nodes = self._between(chosen)
        return Choice(nodes, self._leaving(nodes))

    def wider(self, choice: Choice) -> Choice:
        """The nodes of a choice with their producers and consumers."""
        chosen = set(choice.nodes)
        produced = self._made(chosen)
        read = {name for i in chosen for name in self._reads[i]}
        more = {i for i, node in enumerate(self.nodes) if read & set(node.output) or produced & set(self._reads[i])}
        nodes = self._between(chosen | more)
        return Choice(nodes, self._leaving(nodes))

    def without(self, choice: Choice, dropped: Collection[int]) -> Choice:
        """The choice without the `dropped` nodes."""
        nodes = tuple(i for i in choice.nodes if i not in dropped)
        return Choice(nodes, choice.kept & self._made(nodes))

    def part(self, choice: Choice) -> Part | None:
        """The model of a choice; None if it has no output or reads a value that is unknown or no tensor."""
        produced = self._made(choice.nodes)
        read = list(dict.fromkeys(name for i in choice.nodes for name in self._reads[i]))
        outputs = [o for i in choice.nodes for o in self.nodes[i].output if o and (o not in read or o in choice.kept)]
        inputs = [
            name for name in read if name not in produced and name not in self._weights and name not in self._sparse
        ]
        try:
            feeds = dict(self._values(inputs)) if inputs and outputs else {}
        except TilecError:
            return None
        if not outputs or not all(isinstance(feeds.get(name), np.ndarray) for name in inputs):
            return None
        graph = helper.make_graph(
            [self.nodes[i] for i in choice.nodes],
            self.proto.graph.name or "part",
            [port_of(name, feeds[name]) for name in inputs],
            [onnx.ValueInfoProto(name=name) for name in outputs],
            [self._weight(name) for name in read if name in self._weights],
            sparse_initializer=[self._sparse[name] for name in read if name in self._sparse],
        )
        return Part(_with_graph(self.proto, graph), {name: feeds[name] for name in inputs})

    def _weight(self, name: str) -> TensorProto:
        tensor: TensorProto = self._weights[name]
        if tensor.data_location != TensorProto.EXTERNAL or self._folder is None:
            return tensor
        loaded = TensorProto()
        loaded.CopyFrom(tensor)
        load_external_data_for_tensor(loaded, str(self._folder))
        loaded.data_location = TensorProto.DEFAULT
        del loaded.external_data[:]
        return loaded

    def _made(self, nodes: Iterable[int]) -> frozenset[str]:
        return frozenset(name for i in nodes for name in self.nodes[i].output if name)

    def _leaving(self, nodes: Sequence[int]) -> frozenset[str]:
        """Results of the nodes that others read or that are outputs of the model."""
        inside = set(nodes)
        read = {name for i, names in enumerate(self._reads) if i not in inside for name in names}
        return self._made(nodes) & (read | self._outputs)

    def _between(self, chosen: set[int]) -> tuple[int, ...]:
        """The chosen nodes and every node on a path from one to another."""
        after: set[str] = set()
        behind = set()
        for i, node in enumerate(self.nodes):
            if i in chosen or after & set(self._reads[i]):
                behind.add(i)
                after |= {name for name in node.output if name}
        wanted: set[str] = set()
        between = set(chosen)
        for i in reversed(range(len(self.nodes))):
            if i in chosen or (i in behind and wanted & set(self.nodes[i].output)):
                between.add(i)
                wanted |= set(self._reads[i])
        return tuple(sorted(between))


def changed(part: Part, arrays: Mapping[str, Array]) -> Part:
    """The part with other contents for some inputs and weights."""
    graph = onnx.GraphProto()
    graph.CopyFrom(part.proto.graph)
    weights = [numpy_helper.from_array(arrays[t.name], t.name) if t.name in arrays else t for t in graph.initializer]
    del graph.initializer[:], graph.input[:]
    feeds = {name: arrays.get(name, array) for name, array in part.feeds.items()}
    graph.initializer.extend(weights)
    graph.input.extend(port_of(name, array) for name, array in feeds.items())
    return Part(_with_graph(part.proto, graph), feeds)


def weights_of(part: Part) -> dict[str, Array]:
    """The weights of a part by name."""
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in part.proto.graph.initializer}


def port_of(name: str, array: Array) -> onnx.ValueInfoProto:
    """An input of the type and shape of an array; texts are objects."""
    kind = TensorProto.STRING if array.dtype.kind in "OUS" else helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, array.shape)


def write_part(part: Part, path: Path) -> None:
    """Write the model of a part; large weights go into a separate file."""
    large = sum(len(tensor.raw_data) for tensor in part.proto.graph.initializer) > EXTERNAL_FROM
    onnx.save_model(part.proto, str(path), save_as_external_data=large, location=f"{path.stem}.data")


def _with_graph(model: ModelProto, graph: onnx.GraphProto) -> ModelProto:
    """A copy of the model with another graph."""
    copy = ModelProto(ir_version=max(model.ir_version, 4), producer_name="tilec")
    copy.opset_import.extend(model.opset_import)
    copy.functions.extend(model.functions)
    copy.graph.CopyFrom(graph)
    return copy


def _read(node: NodeProto) -> Iterator[str]:
    """Tensors that a node reads, including those that graphs inside it capture."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            local = {port.name for port in graph.input} | {tensor.name for tensor in graph.initializer}
            local |= {name for inner in graph.node for name in inner.output}
            yield from (name for inner in graph.node for name in _read(inner) if name not in local)
            yield from (port.name for port in graph.output if port.name not in local)
