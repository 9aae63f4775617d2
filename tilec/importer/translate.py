"""Walks a model's nodes and translates each; collects what it cannot, so that one run names everything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx

from tilec.errors import ConfigError, UnsupportedError, did_you_mean
from tilec.importer.builder import Builder, Origin
from tilec.importer.check import OWN_DOMAINS, attributes_of, check_types, label, place_of
from tilec.importer.functions import function_of, function_opset, instantiated
from tilec.importer.names import identifier
from tilec.importer.operator import Op
from tilec.importer.ops import handler_of, known_operators
from tilec.importer.shapes import ShapeError, UndecidedError
from tilec.importer.value import Value
from tilec.importer.weights import Files, tensor_values

Scope = dict[str, Value | None]

DEEPEST = 32
"""Functions may call functions this deep."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A node that import cannot translate, why, and what to do about it."""

    node: str
    op: str
    reason: str
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What nodes are read against: opset and the model's functions; inside a function the node that calls it, how deep
    calls are nested, and under which names the caller knows the function's outputs."""

    file: str
    opset: int
    functions: Mapping[tuple[str, str], Any]
    outer: str = ""
    depth: int = 0
    renamed: Mapping[str, str] = field(default_factory=dict)


class Translator:
    """Translates nodes into `builder`; `unsupported` collects those that cannot be."""

    def __init__(self, builder: Builder, files: Files) -> None:
        self.builder = builder
        self.unsupported: list[Unsupported] = []
        self._files = files

    def run(self, nodes: Iterable[tuple[int, Any]], scope: Scope, context: Context) -> None:
        """Translate nodes in order; their outputs join `scope`. Nodes behind a failed one are passed over."""
        for number, node in nodes:
            name = label(node, number)
            origin = Origin(
                node.op_type, context.outer or name, place_of(context.file, context.outer or name, node.op_type)
            )
            if any(tensor and tensor not in scope for tensor in node.input):
                continue
            try:
                results = self._node(node, scope, context, origin)
            except UnsupportedError as error:
                self.unsupported.append(Unsupported(origin.node, node.op_type, error.message, error.hint))
                continue
            except UndecidedError as error:
                flags = " ".join(f"--shape {symbol}=SIZE" for symbol in error.symbols)
                remedy = f"Bind the sizes: {flags}."
                self.unsupported.append(Unsupported(origin.node, node.op_type, str(error), remedy))
                continue
            except ShapeError as error:
                hint = "The model's shapes do not fit each other; export it again."
                raise ConfigError(str(error), origin.place, hint) from error
            for output, value in zip(node.output, results, strict=False):
                if output and value is not None:
                    scope[output] = value

    def _node(self, node: Any, scope: Scope, context: Context, origin: Origin) -> list[Value | None]:
        inputs = tuple(scope[name] if name else None for name in node.input)
        own = (node.domain, node.op_type) in context.functions
        if node.domain in OWN_DOMAINS and not own:
            if node.op_type == "If":
                return self._branch(node, scope, context, origin)
            handler = handler_of(node.op_type, context.opset)
            if handler is not None:
                attributes = attributes_of(node, context.opset, origin.place)
                ttypes = [None if value is None else value.ttype for value in inputs]
                check_types(node, context.opset, ttypes, origin.place)
                attributes |= {name: tensor_values(v, self._files, origin.place) for name, v in _tensors(attributes)}
                names = tuple(_qualified(name, context) for name in node.output)
                op = Op(node.op_type, context.opset, inputs, names, attributes, origin, self.builder)
                return _results(handler(op))
        function = function_of(node, context.opset, dict(context.functions), inputs)
        if function is None or context.depth >= DEEPEST:
            raise _unknown(node, origin)
        return self._call(function, node, inputs, context, origin)

    def _call(
        self, function: Any, node: Any, inputs: tuple[Value | None, ...], context: Context, origin: Origin
    ) -> list[Value | None]:
        """The outputs of a function's body for these inputs."""
        scope: Scope = dict.fromkeys(function.input)
        scope |= dict(zip(function.input, inputs, strict=False))
        inner = Context(
            context.file,
            function_opset(function, context.opset),
            context.functions,
            outer=origin.node,
            depth=context.depth + 1,
            renamed={a: _qualified(b, context) for a, b in zip(function.output, node.output, strict=False)},
        )
        before = len(self.unsupported)
        self.run(enumerate(instantiated(function, node)), scope, inner)
        if len(self.unsupported) > before:
            first = self.unsupported[before]
            del self.unsupported[before:]
            raise UnsupportedError(f"{first.op} in its definition: {first.reason}", origin.place, first.remedy)
        return [scope.get(name) for name in function.output]

    def _branch(self, node: Any, scope: Scope, context: Context, origin: Origin) -> list[Value | None]:
        """The branch of an `If` whose condition is known."""
        condition = scope[node.input[0]] if node.input and node.input[0] else None
        known = None if condition is None or condition.literal is None else condition.literal.value
        if known is None:
            raise UnsupportedError("the condition is computed from the model's inputs", origin.place, "Freeze it.")
        wanted = "then_branch" if known else "else_branch"
        graph = next((a.g for a in node.attribute if a.name == wanted), None)
        if graph is None:
            raise ConfigError(f"the attribute {wanted!r} is missing", origin.place, "The operator requires it.")
        inner: Scope = dict(scope)
        for tensor in graph.initializer:
            stored = tensor_values(tensor, self._files, origin.place)
            inner[tensor.name] = self.builder.constant(identifier(tensor.name, "t"), stored)
        self.run(enumerate(graph.node), inner, context)
        return [inner.get(output.name) for output in graph.output]


def _results(result: Any) -> list[Value | None]:
    return [result] if isinstance(result, Value) else list(result)


def _qualified(name: str, context: Context) -> str:
    if name in context.renamed:
        return context.renamed[name]
    return f"{context.outer}/{name}" if context.outer and name else name


def _tensors(attributes: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in attributes.items() if isinstance(value, onnx.TensorProto)]


def _unknown(node: Any, origin: Origin) -> UnsupportedError:
    if node.domain not in OWN_DOMAINS:
        reason, hint = (
            f"operators of domain {node.domain!r} are not known",
            "Export the model with ONNX's own operators.",
        )
    elif onnx.defs.has(node.op_type):
        reason, hint = "no tensor expression for this operator yet", "Compute it outside the model."
    else:
        near = did_you_mean(node.op_type, known_operators())
        reason = f"ONNX has no operator {node.op_type!r}"
        hint = f"Did you mean {near!r}?" if near else "Check the operator's name and domain."
    return UnsupportedError(reason, origin.place, hint)
