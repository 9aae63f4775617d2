"""Translation of a model's nodes in order; failures are collected, so that one run reports all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx

from tilec.errors import ConfigError, UnsupportedError, did_you_mean
from tilec.importer.builder import Builder, Origin
from tilec.importer.check import OWN_DOMAINS, attributes_of, check_types, domain_of, needs, place_of
from tilec.importer.context import Context, Scope
from tilec.importer.control.dispatch import control_of
from tilec.importer.control.region import Region
from tilec.importer.functions import called, function_of, key_of
from tilec.importer.named_values import NamedValue, type_of_value
from tilec.importer.operator import Op
from tilec.importer.ops import demand_of, handler_of, known_operators
from tilec.importer.shapes import ShapeError, UndecidedError
from tilec.importer.value import Value
from tilec.importer.weights import Files, tensor_values
from tilec.ir.graph import Unsupported
from tilec.ir.node_labels import label
from tilec.ir.types import TTYPES

MAX_INNER_NODES = 1 << 15
"""Maximal number of nodes that functions, branches and loops may unfold to."""


class Translator:
    """Translates nodes into `builder`; `unsupported` collects those that cannot be translated."""

    def __init__(self, builder: Builder, files: Files) -> None:
        self.builder = builder
        self.unsupported: list[Unsupported] = []
        self.files = files
        self.inner = 0

    def run(self, nodes: Iterable[tuple[int, Any]], scope: Scope, context: Context) -> None:
        """Translate nodes in order; their outputs join `scope`. Nodes that depend on a failed one are skipped."""
        for number, node in nodes:
            name = label(node, number)
            path = f"{context.path}/{name}" if context.path else name
            origin = Origin(node.op_type, context.outer or name, place_of(context.file, path, node.op_type))
            if any(tensor not in scope for tensor in needs(node)):
                continue
            try:
                with self.builder.attempt():
                    results = self._node(node, scope, context, origin)
            except ShapeError as error:
                hint = "The model's shapes do not fit each other; export it again."
                raise ConfigError(str(error), origin.place, hint) from error
            except (UnsupportedError, RecursionError, UndecidedError) as error:
                self.unsupported.append(Unsupported(origin.node, node.op_type, *_reason(error)))
                continue
            for output, value in zip(node.output, results, strict=False):
                if output and value is not None:
                    scope[output] = value

    def _node(self, node: Any, scope: Scope, context: Context, origin: Origin) -> list[NamedValue]:
        region = Region(self, node, scope, context, origin)
        if key_of(node) not in context.functions:
            control = control_of(region) if node.domain in OWN_DOMAINS else None
            if control is not None:
                return control(region)
            handler = handler_of(node.op_type, context.opset, domain_of(node))
            if handler is not None:
                tensors = _only_tensors(region.inputs, origin)
                attributes = attributes_of(node, context.opset, origin.place)
                ttypes = [None if value is None else value.ttype for value in tensors]
                check_types(node, context.opset, [type_of_value(value) for value in tensors], origin.place)
                _require_numbers(node.op_type, ttypes, origin)
                attributes |= {name: tensor_values(v, self.files, origin.place) for name, v in _tensors(attributes)}
                names = tuple(context.qualified(name) for name in node.output)
                op = Op(node.op_type, context.opset, tensors, names, attributes, origin, self.builder)
                return _results(handler(op))
        function = function_of(region)
        if function is None:
            raise _unknown(node, origin)
        demand = demand_of(node.op_type) if key_of(node) not in context.functions and not node.domain else None
        if demand is not None:
            demand(region.op)
            region = replace(region)
        return called(region, function)

    def body(self, nodes: Iterable[tuple[int, Any]], scope: Scope, context: Context, origin: Origin) -> None:
        """`run` for the nodes inside of one node, which fails if one of them does."""
        before = len(self.unsupported)
        within = tuple(nodes)
        self.inner += len(within)
        if self.inner > MAX_INNER_NODES:
            reason = f"functions, branches and loops unfold to more than {MAX_INNER_NODES} nodes"
            raise UnsupportedError(reason, origin.place, "Make the model smaller.")
        self.run(within, scope, context)
        if len(self.unsupported) > before:
            first = self.unsupported[before]
            del self.unsupported[before:]
            raise UnsupportedError(f"{first.op} inside of it: {first.reason}", origin.place, first.remedy)


def _reason(error: UnsupportedError | RecursionError | UndecidedError) -> tuple[str, str | None]:
    """Why a node cannot be translated, and a remedy."""
    match error:
        case UnsupportedError():
            return error.message, error.hint
        case UndecidedError():
            flags = " ".join(f"--shape {symbol}=SIZE" for symbol in error.symbols)
            return str(error), f"Bind the sizes: {flags}."
        case _:
            return "its expressions are nested too deep", "Bind the sizes with --shape SYMBOL=SIZE."


READ_CODES = frozenset(
    {"Cast", "CastLike", "QuantizeLinear", "DequantizeLinear", "GatherBlockQuantized", "Identity", "Shape", "Size"}
    | {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten"}
)
"""Operators that read elements of coded types: they move or convert them."""


def _require_numbers(kind: str, ttypes: Sequence[str | None], origin: Origin) -> None:
    """Raise UnsupportedError for an operator that would compute with codes."""
    coded = next((ttype for ttype in ttypes if ttype is not None and TTYPES[ttype].coded), None)
    if coded is not None and kind not in READ_CODES:
        raise UnsupportedError(f"nothing is computed with {coded}", origin.place, "Insert a Cast to float before it.")


def _only_tensors(inputs: tuple[NamedValue, ...], origin: Origin) -> tuple[Value | None, ...]:
    for number, value in enumerate(inputs):
        if not (value is None or isinstance(value, Value)):
            raise ConfigError(f"input {number} is no tensor", origin.place, "The operator takes tensors only.")
    return tuple(value for value in inputs if value is None or isinstance(value, Value))


def _results(result: Any) -> list[NamedValue]:
    return [result] if isinstance(result, Value) else list(result)


def _tensors(attributes: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in attributes.items() if isinstance(value, onnx.TensorProto)]


def _unknown(node: Any, origin: Origin) -> UnsupportedError:
    if node.domain not in OWN_DOMAINS and not known_operators(node.domain):
        reason, hint = (
            f"operators of domain {node.domain!r} are not known",
            "Export the model with ONNX's own operators.",
        )
    elif node.domain not in OWN_DOMAINS or onnx.defs.has(node.op_type):
        reason, hint = "no tensor expression for this operator yet", "Compute it outside the model."
    else:
        near = did_you_mean(node.op_type, known_operators())
        reason = f"ONNX has no operator {node.op_type!r}"
        hint = f"Did you mean {near!r}?" if near else "Check the operator's name and domain."
    return UnsupportedError(reason, origin.place, hint)
