"""Walks a model's nodes and translates each; collects what it cannot, so that one run names everything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx

from tilec.errors import ConfigError, UnsupportedError, did_you_mean
from tilec.importer.builder import Builder, Origin
from tilec.importer.check import OWN_DOMAINS, attributes_of, check_types, label, place_of
from tilec.importer.control import Region, control_of
from tilec.importer.functions import function_of, function_opset, instantiated
from tilec.importer.held import Held
from tilec.importer.operator import Op
from tilec.importer.ops import handler_of, known_operators
from tilec.importer.shapes import ShapeError, UndecidedError
from tilec.importer.value import Value
from tilec.importer.weights import Files, tensor_values

Scope = dict[str, Held]

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
        self.files = files

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

    def _node(self, node: Any, scope: Scope, context: Context, origin: Origin) -> list[Held]:
        inputs = tuple(scope[name] if name else None for name in node.input)
        own = (node.domain, node.op_type) in context.functions
        if node.domain in OWN_DOMAINS and not own:
            control = control_of(node)
            if control is not None:
                return control(Region(self, node, scope, context, origin))
            handler = handler_of(node.op_type, context.opset)
            if handler is not None:
                tensors = _only_tensors(inputs, origin)
                attributes = attributes_of(node, context.opset, origin.place)
                ttypes = [None if value is None else value.ttype for value in tensors]
                check_types(node, context.opset, ttypes, origin.place)
                attributes |= {name: tensor_values(v, self.files, origin.place) for name, v in _tensors(attributes)}
                names = tuple(_qualified(name, context) for name in node.output)
                op = Op(node.op_type, context.opset, tensors, names, attributes, origin, self.builder)
                return _results(handler(op))
        function = function_of(node, context.opset, dict(context.functions), _only_tensors(inputs, origin))
        if function is None or context.depth >= DEEPEST:
            raise _unknown(node, origin)
        return self._call(function, node, inputs, context, origin)

    def _call(self, function: Any, node: Any, inputs: tuple[Held, ...], context: Context, origin: Origin) -> list[Held]:
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
        self.body(enumerate(instantiated(function, node)), scope, inner, origin)
        return [scope.get(name) for name in function.output]

    def body(self, nodes: Iterable[tuple[int, Any]], scope: Scope, context: Context, origin: Origin) -> None:
        """`run` for the nodes inside of one node: what one of them cannot do, that node cannot."""
        before = len(self.unsupported)
        self.run(nodes, scope, context)
        if len(self.unsupported) > before:
            first = self.unsupported[before]
            del self.unsupported[before:]
            raise UnsupportedError(f"{first.op} in its definition: {first.reason}", origin.place, first.remedy)


def _only_tensors(inputs: tuple[Held, ...], origin: Origin) -> tuple[Value | None, ...]:
    for number, value in enumerate(inputs):
        if not (value is None or isinstance(value, Value)):
            raise ConfigError(f"input {number} is no tensor", origin.place, "The operator takes tensors only.")
    return tuple(value for value in inputs if value is None or isinstance(value, Value))


def _results(result: Any) -> list[Held]:
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
