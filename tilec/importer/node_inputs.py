"""Inputs of an ONNX node: operands, attributes, contents known at compile time, and errors that name the node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilec.errors import ConfigError, TilecError, UnsupportedError
from tilec.importer.builder import Builder, Origin
from tilec.importer.node_sizes import NodeSizes
from tilec.importer.shapes import UndecidedError, require_same, symbols_of
from tilec.importer.value import Value
from tilec.ir.algebra import simplify
from tilec.ir.expr import Binary, Const, Expr, Scalar, constant_value
from tilec.ir.size_facts import divides
from tilec.ir.text import text_of


@dataclass(frozen=True, slots=True, eq=False)
class NodeInputs:
    """An ONNX node's operands and attributes, with errors that name the node."""

    kind: str
    opset: int
    inputs: tuple[Value | None, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    origin: Origin
    builder: Builder

    @property
    def sizes(self) -> NodeSizes:
        """What is known of symbolic sizes, and what this node may assume."""
        return NodeSizes(self.builder.sizes, f"node {self.origin.node} ({self.origin.op})")

    def require_same(self, a: Expr, b: Expr, what: str) -> None:
        """Raise ShapeError when two extents differ; where that depends on symbols, they are assumed to be equal."""
        require_same(a, b, what, self.sizes)

    def fixed(self, extent: Expr, decides: str) -> int:
        """An extent that decides something that cannot vary. Raises UndecidedError for one that depends on symbols."""
        known = constant_value(extent)
        if known is None:
            raise UndecidedError(f"the size {text_of(extent)} decides {decides}", symbols_of([extent]))
        return known

    def divided(self, size: Expr, parts: int, what: str) -> Expr:
        """An extent divided into equal parts. Raises ConfigError where that leaves a rest; where it depends on symbols
        whether it does, none is assumed."""
        known, described = constant_value(size), f"{text_of(size)} channels in {parts} {what}"
        if parts < 1 or (known is not None and known % parts):
            raise self.invalid(described)
        self.sizes.assume(divides(Const(parts), size), described)
        return simplify(Binary("//", size, Const(parts)))

    def value(self, position: int) -> Value:
        """A required input."""
        operand = self.optional(position)
        if operand is None:
            raise self.invalid(f"input {position} is missing")
        return operand

    def optional(self, position: int) -> Value | None:
        """An input, or None when it is absent."""
        return self.inputs[position] if position < len(self.inputs) else None

    def values(self) -> tuple[Value, ...]:
        """All inputs of an operator with any number of them."""
        return tuple(self.value(i) for i in range(len(self.inputs)))

    def wants(self, output: int) -> bool:
        """Whether an output may be read."""
        return output < len(self.outputs) and bool(self.outputs[output])

    def integer(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        return int(self.attributes.get(name, default))

    def number(self, name: str, default: float = 0.0) -> float:
        """A float attribute, rounded to the float32 in the model."""
        return float(np.float32(self.attributes.get(name, default)))

    def text(self, name: str, default: str = "") -> str:
        """A string attribute."""
        value = self.attributes.get(name, default)
        return value.decode(errors="replace") if isinstance(value, bytes) else str(value)

    def integers(self, name: str) -> tuple[int, ...] | None:
        """A list of integers, or None when the attribute is absent."""
        value = self.attributes.get(name)
        return None if value is None else tuple(int(v) for v in value)

    def contents(self, position: int) -> tuple[Expr, ...] | None:
        """The elements of an integer input as expressions of the symbols; None when the input is absent."""
        value = self.optional(position)
        if value is None:
            return None
        known = self.builder.known(value)
        if known is None:
            raise self.unknown(position)
        return known

    def constants(self, position: int) -> tuple[int, ...] | None:
        """Like `contents`, as plain integers."""
        known = self.contents(position)
        if known is None:
            return None
        numbers = [constant_value(e) for e in known]
        for expr, value in zip(known, numbers, strict=True):
            if value is None:
                reason = f"input {position} depends on a symbolic size: {text_of(expr)}"
                raise self.unsupported(reason, "Bind it with --shape SYMBOL=SIZE.")
        return tuple(value for value in numbers if value is not None)

    def single(self, position: int) -> Expr:
        """The only element of an integer input as an expression of the symbols."""
        known = self.contents(position)
        if known is None or len(known) != 1:
            raise self.invalid(f"input {position} must have one element")
        return known[0]

    def required(self, position: int) -> Scalar:
        """The only element of a constant input."""
        value = self.value(position).literal
        if value is None:
            raise self.unknown(position)
        return value.value

    def setting(self, position: int, attribute: str) -> tuple[Expr, ...] | None:
        """An input of newer opsets that older ones have as an attribute of integers."""
        given = self.integers(attribute)
        return self.contents(position) if given is None else tuple(Const(v) for v in given)

    def axis(self, axis: int, rank: int) -> int:
        """A dimension counted from the front. Raises ConfigError outside [-rank, rank)."""
        if not -rank <= axis < rank:
            raise self.invalid(f"axis {axis} of a tensor of rank {rank}", "Axes run from -rank to rank - 1.")
        return axis % rank

    def axes(self, position: int, attribute: str, rank: int) -> tuple[int, ...] | None:
        """Axes from an attribute or input, counted from the front, sorted; None when absent or empty."""
        given = self.integers(attribute)
        given = self.constants(position) if given is None else given
        return tuple(sorted({self.axis(a, rank) for a in given})) if given else None

    def axes_in_order(self, position: int, rank: int) -> tuple[int, ...] | None:
        """Axes from an input, counted from the front, in the given order; None when absent."""
        given = self.constants(position)
        return None if given is None else tuple(self.axis(a, rank) for a in given)

    def unknown(self, position: int) -> TilecError:
        """The error for an input whose contents are required at compile time and not known."""
        self.builder.ask(self.value(position))
        reason = f"input {position} must be known at compile time and is computed from the model's inputs"
        return self.unsupported(reason, "Bind the symbols it depends on (--shape SYMBOL=SIZE), or make it a constant.")

    def invalid(self, message: str, hint: str | None = None) -> TilecError:
        """The error for a model that is wrong here."""
        return ConfigError(message, self.origin.place, hint)

    def unsupported(self, reason: str, remedy: str | None = None) -> TilecError:
        """The error for a valid model beyond the abilities of import."""
        return UnsupportedError(reason, self.origin.place, remedy)
