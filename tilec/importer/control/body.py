"""Bodies: graphs inside a node, called with arguments any number of times; invariant nodes are computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import onnx

from tilec.importer.check import OWN_DOMAINS, needs, ordered
from tilec.importer.context import Scope
from tilec.importer.control.region import Region
from tilec.importer.element_types import ELEMENT_TYPES, element_type_name
from tilec.importer.named_values import NamedValue
from tilec.importer.names import identifier
from tilec.importer.value import Value
from tilec.importer.weights import tensor_values

NO_NAMES: Mapping[str, str] = {}


class Body:
    """The graph in an attribute of a node; it may read names from around the node as well.

    What it demands of sizes is demanded of the model where it is `steady`, computed with the same shapes each time, or
    `certain`, computed in every run; of a certain one also what it demands of indices.
    """

    def __init__(self, region: Region, attribute: str, path: str, steady: bool = False, certain: bool = False) -> None:
        self.graph: Any = region.attributes[attribute]
        self.attribute = attribute
        self.path = path
        self._steady = steady
        self._certain = certain
        self._region = region
        self._begun = False
        graph = self.graph
        if graph.sparse_initializer:
            raise region.unsupported(f"sparse constants in {attribute}", "Store them dense.")
        arguments = [info.name for info in graph.input]
        inner = {name for node in graph.node for name in node.output} | {*arguments}
        inner |= {tensor.name for tensor in graph.initializer}
        around = {name for name in region.scope if name not in inner}
        given = [*around, *arguments, *(tensor.name for tensor in graph.initializer)]
        nodes = ordered(graph.node, given, region.origin.place)
        read = {name for node in graph.node for name in needs(node)} | {info.name for info in graph.output}
        self._scope: Scope = {name: region.scope[name] for name in read & around}
        varying = set(arguments)
        self._once: list[tuple[int, Any]] = []
        self._each: list[tuple[int, Any]] = []
        for number, node in nodes:
            varies = not _deterministic(node) or any(name in varying for name in needs(node))
            varying |= set(node.output) if varies else set()
            (self._each if varies else self._once).append((number, node))
        self._varying = varying

    @property
    def reads(self) -> list[Value]:
        """The tensors from around the node that the graph reads."""
        return [value for value in self._scope.values() if isinstance(value, Value)]

    def varies(self, output: int) -> bool:
        """Whether an output depends on the arguments; one that does not has the same value in every call."""
        return self.graph.output[output].name in self._varying

    def expect(self, inputs: int, outputs: int, why: str) -> None:
        """Raise ConfigError unless the graph has these numbers of inputs and outputs."""
        for kind, number, wanted in (
            ("inputs", len(self.graph.input), inputs),
            ("outputs", len(self.graph.output), outputs),
        ):
            if number != wanted:
                raise self._region.invalid(f"{self.attribute} has {number} {kind}, it must have {wanted}: {why}")

    def call(
        self, arguments: Sequence[NamedValue], step: str = "", results: Mapping[str, str] = NO_NAMES
    ) -> list[NamedValue]:
        """The outputs for these arguments.

        `step` is added to the names of computed tensors; `results` maps names of the graph to the node's outputs.
        Raises ConfigError for arguments, results and outputs of other types than the graph declares.
        """
        builder = self._region.translator.builder
        with nullcontext() if self._certain else builder.conditional(sizes=not self._steady):
            return self._translated(arguments, step, results)

    def _translated(self, arguments: Sequence[NamedValue], step: str, results: Mapping[str, str]) -> list[NamedValue]:
        region = self._region
        if not self._begun:
            self._begun = True
            for tensor in self.graph.initializer:
                stored = tensor_values(tensor, region.files, region.origin.place)
                name = identifier(f"{self.path}/{tensor.name}", "t")
                self._scope[tensor.name] = region.translator.builder.constant(name, stored)
            context = region.inside(self.path, NO_NAMES if self._each else results)
            region.translator.body(self._once, self._scope, context, region.origin)
        scope = dict(self._scope)
        for info, argument in zip(self.graph.input, arguments, strict=True):
            self._require_type(info, argument, "input")
            scope[info.name] = argument
        context = region.inside(f"{self.path}/{step}" if step else self.path, results)
        region.translator.body(self._each, scope, context, region.origin)
        for info in self.graph.value_info:
            self._require_type(info, scope.get(info.name), "tensor")
        return [self._output(info, scope) for info in self.graph.output]

    def _output(self, info: Any, scope: Scope) -> NamedValue:
        value = scope.get(info.name)
        if value is None:
            raise self._region.invalid(f"output {info.name!r} of {self.attribute} is defined nowhere")
        self._require_type(info, value, "output")
        return value

    def _require_type(self, info: Any, value: NamedValue, kind: str) -> None:
        code = info.type.tensor_type.elem_type
        if not code or value is None:
            return
        ttype = value.ttype if isinstance(value, Value) else "no tensor"
        wanted = ELEMENT_TYPES.get(code, element_type_name(code))
        if ttype != wanted:
            message = f"{kind} {info.name!r} of {self.attribute} is {ttype}, declared as {wanted}"
            raise self._region.invalid(message, "Types inside and outside of a body must be the same.")


def _deterministic(node: Any) -> bool:
    """Whether a node always computes the same results from the same inputs."""
    if any(not _deterministic(n) for a in node.attribute for g in (a.g, *a.graphs) for n in g.node):
        return False
    if node.domain not in OWN_DOMAINS or not onnx.defs.has(node.op_type):
        return True
    schema: Any = onnx.defs.get_schema(node.op_type)
    return bool(schema.node_determinism != schema.NodeDeterminism.NonDeterministic)
