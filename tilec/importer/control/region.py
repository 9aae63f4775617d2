"""A node that holds others (a body, a function's definition) or tensors (a sequence), and what it is read against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tilec.errors import ConfigError, TilecError, UnsupportedError
from tilec.importer.builder import Origin
from tilec.importer.check import attributes_of, check_types
from tilec.importer.context import BodyTranslator, Context, Scope
from tilec.importer.named_values import NamedValue
from tilec.importer.operator import Op
from tilec.importer.value import Value
from tilec.importer.weights import Files
from tilec.ir.expr import Expr, constant_value
from tilec.ir.text import text_of

DEEPEST = 64
"""Bodies and functions may stand inside each other this deep."""


@dataclass(frozen=True, eq=False)
class Region:
    """A node, the names around it, and where it stands."""

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
        own = self.node.name or next(filter(None, self.node.output), self.node.op_type)
        return f"{self.context.path}/{own}"

    @cached_property
    def inputs(self) -> tuple[NamedValue, ...]:
        """What the node reads."""
        return tuple(self.scope[name] if name else None for name in self.node.input)

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """The node's attributes."""
        return attributes_of(self.node, self.context.opset, self.origin.place)

    def check(self) -> None:
        """Raise ConfigError where attributes, numbers of inputs or types break the operator's definition."""
        attributes_of(self.node, self.context.opset, self.origin.place)
        ttypes = [value.ttype if isinstance(value, Value) else None for value in self.inputs]
        check_types(self.node, self.context.opset, ttypes, self.origin.place)

    def held(self, position: int) -> NamedValue:
        """An input, None where it is absent."""
        return self.inputs[position] if position < len(self.inputs) else None

    def tensor(self, position: int) -> Value:
        """A required input that is a tensor. Raises ConfigError."""
        value = self.held(position)
        if not isinstance(value, Value):
            raise self.invalid(f"input {position} is {'missing' if value is None else 'no tensor'}")
        return value

    def integer(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        return int(self.attributes.get(name, default))

    def elements(self, value: Value, what: str) -> tuple[int, ...]:
        """The elements of an integer or bool tensor. Raises UnsupportedError where import does not know them."""
        known = value.known()
        if known is None:
            self.op.builder.ask(value)
            reason = f"{what} must be known at compile time and is computed from the model's inputs"
            raise self.unsupported(reason, "Make it a constant of the model.")
        return tuple(self.number(element, what) for element in known)

    def scalar(self, value: Value, what: str) -> int:
        """The one element of an integer or bool tensor."""
        if value.form is not None and not value.rank:
            return self.number(value.form, what)
        found = self.elements(value, what)
        if len(found) != 1:
            raise self.invalid(f"{what} has {len(found)} elements", "It must have one.")
        return found[0]

    def number(self, expr: Expr, what: str) -> int:
        """An expression of the symbols that has to be a number. Raises UnsupportedError."""
        found = constant_value(expr)
        if found is None:
            reason = f"{what} depends on a symbolic size: {text_of(expr)}"
            raise self.unsupported(reason, "Bind it with --shape SYMBOL=SIZE.")
        return found

    @cached_property
    def op(self) -> Op:
        """The node as an operator over its inputs that are tensors, for what it computes itself."""
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
        """Where values of tensors lie."""
        return self.translator.files

    def inside(self, path: str, results: Mapping[str, str], opset: int | None = None) -> Context:
        """The context of nodes inside of this one; `results` are names in there -> names of this node's outputs.

        Raises UnsupportedError when nodes stand too deep inside each other.
        """
        if self.context.depth >= DEEPEST:
            raise self.unsupported(f"nodes stand more than {DEEPEST} deep inside each other", "Flatten the model.")
        return replace(
            self.context,
            opset=self.context.opset if opset is None else opset,
            outer=self.origin.node,
            path=path,
            depth=self.context.depth + 1,
            renamed={inner: self.context.qualified(outer) for inner, outer in results.items() if outer},
        )

    def invalid(self, message: str, hint: str | None = None) -> TilecError:
        """The model is wrong here."""
        return ConfigError(message, self.origin.place, hint)

    def unsupported(self, reason: str, remedy: str | None = None) -> TilecError:
        """The model is right, but this is beyond what import can do."""
        return UnsupportedError(reason, self.origin.place, remedy)
