"""Regions: a node that contains others (a body, a function's definition) or tensors (a sequence), with its context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tilec.errors import ConfigError, TilecError, UnsupportedError
from tilec.importer.builder import Origin
from tilec.importer.check import attributes_of, check_types
from tilec.importer.context import BodyTranslator, Context, Scope
from tilec.importer.named_values import NamedValue, type_of_value
from tilec.importer.operator import Op
from tilec.importer.value import Value
from tilec.importer.weights import Files
from tilec.ir.expr import Expr, constant_value
from tilec.ir.text import text_of

MAX_DEPTH = 64
"""Maximal nesting of bodies and functions."""


@dataclass(frozen=True, eq=False)
class Region:
    """A node, the names around it, and its position in the model."""

    translator: BodyTranslator
    node: Any
    scope: Scope
    context: Context
    origin: Origin

    @property
    def path(self) -> str:
        """Names of the nodes from the model's own down to this one: `loop/3/add`."""
        if not self.context.path:
            return self.origin.node
        name = self.node.name or next(filter(None, self.node.output), self.node.op_type)
        return f"{self.context.path}/{name}"

    @cached_property
    def inputs(self) -> tuple[NamedValue, ...]:
        """The node's operands, with what is known of their sizes by now."""
        facts = self.translator.builder.sizes.facts
        given = (self.scope[name] if name else None for name in self.node.input)
        return tuple(value.reduced(facts.reduced) if isinstance(value, Value) else value for value in given)

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """The node's attributes."""
        return attributes_of(self.node, self.context.opset, self.origin.place)

    def check(self) -> None:
        """Raise ConfigError where attributes, numbers of inputs or types violate the operator's definition."""
        attributes_of(self.node, self.context.opset, self.origin.place)
        types = [type_of_value(value) for value in self.inputs]
        check_types(self.node, self.context.opset, types, self.origin.place)

    def optional(self, position: int) -> NamedValue:
        """An input, None where it is absent."""
        return self.inputs[position] if position < len(self.inputs) else None

    def tensor(self, position: int) -> Value:
        """A required input that is a tensor. Raises ConfigError."""
        value = self.optional(position)
        if not isinstance(value, Value):
            raise self.invalid(f"input {position} is {'missing' if value is None else 'no tensor'}")
        return value

    def integer(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        return int(self.attributes.get(name, default))

    def elements(self, value: Value, what: str) -> tuple[int, ...]:
        """The elements of an integer or bool tensor. Raises UnsupportedError where they are not known at import."""
        known = self.translator.builder.known(value)
        if known is None:
            self.op.builder.ask(value)
            reason = f"{what} must be known at compile time and is computed from the model's inputs"
            raise self.unsupported(reason, "Make it a constant of the model.")
        return tuple(self.number(element, what) for element in known)

    def scalar(self, value: Value, what: str) -> int:
        """The only element of an integer or bool tensor."""
        if value.form is not None and not value.rank:
            return self.number(value.form, what)
        elements = self.elements(value, what)
        if len(elements) != 1:
            raise self.invalid(f"{what} has {len(elements)} elements", "It must have one.")
        return elements[0]

    def number(self, expr: Expr, what: str) -> int:
        """The value of an expression without symbols. Raises UnsupportedError for others."""
        value = constant_value(expr)
        if value is None:
            reason = f"{what} depends on a symbolic size: {text_of(expr)}"
            raise self.unsupported(reason, "Bind it with --shape SYMBOL=SIZE.")
        return value

    @cached_property
    def op(self) -> Op:
        """The node as an operator over its tensor inputs, for the parts that it computes itself."""
        tensors = tuple(value if isinstance(value, Value) else None for value in self.inputs)
        names = tuple(self.context.qualified(name) for name in self.node.output) or (self.path,)
        return Op(
            self.node.op_type,
            self.context.opset,
            tensors,
            names,
            dict(self.attributes),
            self.origin,
            self.translator.builder,
        )

    @property
    def files(self) -> Files:
        """The files of the model's tensors."""
        return self.translator.files

    def inside(self, path: str, results: Mapping[str, str], opset: int | None = None) -> Context:
        """The context of nodes inside of this one; `results` maps names inside to names of this node's outputs.

        Raises UnsupportedError when nodes are nested too deeply.
        """
        if self.context.depth >= MAX_DEPTH:
            raise self.unsupported(f"nodes stand more than {MAX_DEPTH} deep inside each other", "Flatten the model.")
        return replace(
            self.context,
            opset=self.context.opset if opset is None else opset,
            outer=self.origin.node,
            path=path,
            depth=self.context.depth + 1,
            renamed={inner: self.context.qualified(outer) for inner, outer in results.items() if outer},
        )

    def invalid(self, message: str, hint: str | None = None) -> TilecError:
        """The error for a model that is wrong here."""
        return ConfigError(message, self.origin.place, hint)

    def unsupported(self, reason: str, remedy: str | None = None) -> TilecError:
        """The error for a valid model beyond the abilities of import."""
        return UnsupportedError(reason, self.origin.place, remedy)
