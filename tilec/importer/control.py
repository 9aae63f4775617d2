"""Control flow: operators whose bodies are graphs, resolved at import."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilec.errors import ConfigError, TilecError, UnsupportedError
from tilec.importer.builder import Origin
from tilec.importer.held import Held
from tilec.importer.names import identifier
from tilec.importer.value import Value
from tilec.importer.weights import tensor_values

if TYPE_CHECKING:
    from tilec.importer.translate import Context, Scope, Translator


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A node that holds bodies, sequences or optionals, and what it is read against."""

    translator: Translator
    node: Any
    scope: Scope
    context: Context
    origin: Origin

    def invalid(self, message: str, hint: str | None = None) -> TilecError:
        """The model is wrong here."""
        return ConfigError(message, self.origin.place, hint)

    def unsupported(self, reason: str, remedy: str | None = None) -> TilecError:
        """The model is right, but this is beyond what import can do."""
        return UnsupportedError(reason, self.origin.place, remedy)


def _branch(region: Region) -> list[Held]:
    """The branch of an `If` whose condition is known."""
    node, scope = region.node, region.scope
    condition = scope[node.input[0]] if node.input and node.input[0] else None
    known = condition.literal.value if isinstance(condition, Value) and condition.literal is not None else None
    if known is None:
        if isinstance(condition, Value):
            region.translator.builder.ask(condition)
        raise region.unsupported("the condition is computed from the model's inputs", "Freeze it.")
    wanted = "then_branch" if known else "else_branch"
    graph = next((a.g for a in node.attribute if a.name == wanted), None)
    if graph is None:
        raise region.invalid(f"the attribute {wanted!r} is missing", "The operator requires it.")
    inner: Scope = dict(scope)
    translator = region.translator
    for tensor in graph.initializer:
        stored = tensor_values(tensor, translator.files, region.origin.place)
        inner[tensor.name] = translator.builder.constant(identifier(tensor.name, "t"), stored)
    translator.body(enumerate(graph.node), inner, region.context, region.origin)
    return [inner.get(output.name) for output in graph.output]


_RULES: dict[str, Callable[[Region], list[Held]]] = {"If": _branch}


def control_of(node: Any) -> Callable[[Region], list[Held]] | None:
    """The function that resolves an operator of ONNX's own domain at import; None for operators over tensors."""
    return _RULES.get(node.op_type)
