"""Fallback of nodes that do not compile: their clusters, and inferred types of their results (BladeDISC, plugin mode).

A cluster is run by onnxruntime in one call. A node belongs to the first cluster behind all its operands, so that
clusters and compiled segments alternate, no cluster depends on a later one, and their number is minimal under this
rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tilec.importer.builder import Builder
from tilec.importer.check import needs
from tilec.importer.loader import Model
from tilec.importer.named_values import Items, Maybe, NamedValue, Outside
from tilec.importer.names import identifier
from tilec.importer.node_sizes import NodeSizes
from tilec.importer.onnx_types import ELEMENT_NAMES, tensor_of, tensor_type
from tilec.importer.reported_sizes import Open, OpenShape, open_shapes
from tilec.importer.value import Value
from tilec.ir.expr import Expr
from tilec.ir.graph import Unsupported
from tilec.ir.types import TTYPES
from tilec.onnxruntime_package import import_onnxruntime

MAX_SHOWN_ELEMENTS = 1024
"""Maximal number of elements of known contents that take part in shape inference."""


@dataclass(frozen=True, slots=True)
class Fallen:
    """A node that onnxruntime runs: its number and proto, the reason, its cluster, and its results by name."""

    number: int
    node: Any
    why: Unsupported
    cluster: int
    results: Mapping[str, Value | Outside]


class Fallbacks:
    """The nodes that do not compile, in the order of the model."""

    def __init__(self, builder: Builder, model: Model) -> None:
        self.fallen: list[Fallen] = []
        self.sequences: set[str] = set()
        self.builder = builder
        self.model = model
        self._maker: dict[str, Fallen] = {}
        self._declared = {info.name: info.type for info in (*model.proto.graph.value_info, *model.proto.graph.output)}

    def add(self, number: int, node: Any, why: Unsupported, scope: dict[str, NamedValue]) -> None:
        """Leave a node to onnxruntime; its results join `scope`.

        Names of sequences and optionals that it reads, which exist only during import, and of computed codes are
        recorded in `sequences`: the nodes that create those have to be left to onnxruntime too.
        """
        reads = [name for name in dict.fromkeys(needs(node)) if name in scope]
        self.sequences |= {name for name in reads if _stays_inside(scope[name])}
        cluster = max((self._segment(name, scope[name]) for name in reads), default=0)
        types = self._inferred(node, {name: scope[name] for name in reads})
        results: dict[str, Value | Outside] = {}
        operands = [value if isinstance(value := scope.get(name), Value) else None for name in node.input]
        sizes = NodeSizes(self.builder.sizes, f"node {why.node} ({why.op})")
        symbols: dict[int, Expr] = {}
        for name, opened in zip(node.output, open_shapes(node, operands), strict=True):
            if not name:
                continue
            proto = types.get(name) or self._declared.get(name) or onnx.TypeProto()
            tensor = tensor_of(_of_rank(proto, opened), self.builder.sizes.facts)
            taken = identifier(name, "t")
            if tensor is None:
                results[name] = Outside(self.builder.names.take(taken), proto)
            else:
                shape = _reported(node.op_type, _merged(tensor[1], opened), symbols, sizes)
                results[name] = self.builder.result(taken, shape, tensor[0], cluster + 1)
        fallen = Fallen(number, node, why, cluster, results)
        self.fallen.append(fallen)
        self._maker |= dict.fromkeys(results, fallen)
        scope.update(results)

    @property
    def result_names(self) -> frozenset[str]:
        """Names in the graph of all results."""
        return frozenset(value.name for each in self.fallen for value in each.results.values())

    def live(self, outputs: Sequence[str], scope: Mapping[str, NamedValue]) -> tuple[list[Fallen], set[str]]:
        """The nodes that `outputs` depend on, in order, and the tensors that compiled nodes and outputs need."""
        reached = self.builder.reach(outputs)
        live: list[Fallen] = []
        for each in reversed(self.fallen):
            if any(value.name in reached for value in each.results.values()):
                live.append(each)
                reads = [value for name in needs(each.node) if isinstance(value := scope.get(name), Value | Outside)]
                reached |= self.builder.reach(value.name for value in reads if _is_handed(value))
        return live[::-1], reached

    def _segment(self, name: str, value: NamedValue) -> int:
        """The first cluster that can read a value: the one that computes it, or the one behind its segment."""
        if name in self._maker:
            return self._maker[name].cluster
        return self.builder.segment(value.name) if isinstance(value, Value) else 0

    def _inferred(self, node: Any, reads: Mapping[str, NamedValue]) -> dict[str, Any]:
        """ONNX's types of a node's results, by shape inference over the node alone."""
        graph = onnx.GraphProto(name="node")
        graph.node.append(node)
        for name, value in reads.items():
            if isinstance(value, Value):
                graph.input.append(onnx.ValueInfoProto(name=name, type=tensor_type(value.ttype, value.shape)))
                if value.array is not None and value.array.size <= MAX_SHOWN_ELEMENTS and not TTYPES[value.ttype].coded:
                    graph.initializer.append(constant(name, value.array))
            elif isinstance(value, Outside):
                graph.input.append(onnx.ValueInfoProto(name=name, type=value.type))
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
        model = wrapped(self.model, graph)
        types = _by_onnx(model)
        if any(name not in types for name in node.output if name):
            types = _by_onnxruntime(model) | types
        return types


def _of_rank(proto: Any, opened: OpenShape | None) -> Any:
    """A tensor's type whose rank is unknown to inference, with the number of extents of the operator's definition."""
    if opened is None or proto.WhichOneof("value") != "tensor_type" or proto.tensor_type.HasField("shape"):
        return proto
    return onnx.helper.make_tensor_type_proto(proto.tensor_type.elem_type, [None] * len(opened))


def _merged(inferred: Sequence[Expr | None], opened: OpenShape | None) -> OpenShape:
    """The extents of a result as inference knows them, else as the operator's definition does."""
    if opened is None or len(opened) != len(inferred):
        return tuple(Open(number=-1) if extent is None else extent for extent in inferred)
    return tuple(own if extent is None else extent for extent, own in zip(inferred, opened, strict=True))


def _reported(op: str, shape: OpenShape, symbols: dict[int, Expr], sizes: NodeSizes) -> tuple[Expr, ...]:
    """A shape with a symbol for each open extent; `symbols` has those of the node so far, by number."""
    result: list[Expr] = []
    for extent in shape:
        if not isinstance(extent, Open):
            result.append(extent)
        elif extent.number in symbols:
            result.append(symbols[extent.number])
        else:
            symbol = sizes.report(identifier(op.lower(), "size"), extent.limit)
            result.append(symbol)
            if extent.number >= 0:
                symbols[extent.number] = symbol
    return tuple(result)


def constant(name: str, array: NDArray[Any]) -> Any:
    """An array as a TensorProto."""
    return onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)


def _by_onnx(model: Any) -> dict[str, Any]:
    """Types by ONNX's shape inference."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # it passes on any exception of the C++ code; without it fewer types are known
        return {}
    known = (*inferred.graph.output, *inferred.graph.value_info)
    return {info.name: info.type for info in known if info.type.WhichOneof("value")}


def _by_onnxruntime(model: Any) -> dict[str, Any]:
    """Types of tensors by onnxruntime, for operators that ONNX does not define."""
    try:
        onnxruntime = import_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    except Exception:  # not installed, or it does not know the operator either
        return {}
    types = {}
    for port in session.get_outputs():
        element = ELEMENT_NAMES.get(port.type)
        if element is not None:
            # onnxruntime reports a scalar and an unknown rank alike.
            types[port.name] = onnx.helper.make_tensor_type_proto(element, port.shape or None)
    return types


def is_defined(domain: str, operator: str) -> bool:
    """Whether ONNX or onnxruntime defines an operator; where onnxruntime is not installed, any of another domain may
    be."""
    if onnx.defs.has(operator, domain):
        return True
    if not domain:
        return False
    known = _defined_by_onnxruntime()
    return known is None or (domain, operator) in known


@cache
def _defined_by_onnxruntime() -> frozenset[tuple[str, str]] | None:
    """Domain and name of every operator that onnxruntime defines; None where it does not tell."""
    try:
        state = import_onnxruntime().capi.onnxruntime_pybind11_state
        return frozenset((each.domain, each.name) for each in state.get_all_operator_schema())
    except (ImportError, AttributeError):
        return None


def _stays_inside(value: NamedValue) -> bool:
    """Whether onnxruntime cannot be given a value that compiled code makes."""
    return isinstance(value, Items | Maybe) or (isinstance(value, Value) and TTYPES[value.ttype].coded)


def _is_handed(value: Value | Outside) -> bool:
    """Whether a cluster reads a value from outside; constants are in its own file."""
    return isinstance(value, Outside) or value.array is None


def wrapped(model: Model, graph: Any) -> Any:
    """A model around some of a model's nodes: same opsets, and the functions that the nodes may call."""
    proto = onnx.ModelProto(ir_version=min(max(model.proto.ir_version, OLDEST_IR), NEWEST_IR), graph=graph)
    proto.opset_import.extend(model.proto.opset_import)
    proto.functions.extend(model.proto.functions)
    return proto


OLDEST_IR, NEWEST_IR = 8, 13
"""IR versions: the first with functions, and the last that every onnxruntime in use reads."""


def forced_by(sequences: Iterable[str], nodes: Sequence[tuple[int, Any]], scope: Mapping[str, NamedValue]) -> set[int]:
    """Numbers of the nodes that create sequences or optionals of these names, directly or indirectly."""
    maker = {name: (number, node) for number, node in nodes for name in node.output if name}
    pending, numbers = list(sequences), set[int]()
    while pending:
        source = maker.get(pending.pop())
        if source is None or source[0] in numbers:
            continue
        numbers.add(source[0])
        pending += [name for name in needs(source[1]) if isinstance(scope.get(name), Items | Maybe)]
    return numbers
