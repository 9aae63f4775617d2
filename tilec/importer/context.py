"""What nodes are read against: the names around them, opset and functions, and the translator that reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tilec.importer.builder import Builder, Origin
from tilec.importer.named_values import NamedValue
from tilec.importer.weights import Files

Scope = dict[str, NamedValue]

FunctionKey = tuple[str, str, str]
"""Domain, name and overload."""

Functions = Mapping[FunctionKey, Any]


@dataclass(frozen=True, slots=True)
class Context:
    """What nodes are read against: opset and the model's functions.

    Inside of a node of the model: that node's name, the path to the nodes, how many nodes they stand in, and the names
    under which the outside knows the results.
    """

    file: str
    opset: int
    functions: Functions
    outer: str = ""
    path: str = ""
    depth: int = 0
    renamed: Mapping[str, str] = field(default_factory=dict)

    def qualified(self, name: str) -> str:
        """What a tensor is called outside: by the name that it has there, or by its path."""
        if name in self.renamed:
            return self.renamed[name]
        return f"{self.path}/{name}" if self.path and name else name


class BodyTranslator(Protocol):
    """What operators that hold others need of the translator that reads them: `inner` counts the nodes that functions,
    branches and loops have unfolded to so far."""

    builder: Builder
    files: Files
    inner: int

    def body(self, nodes: Iterable[tuple[int, Any]], scope: Scope, context: Context, origin: Origin) -> None:
        """Translate the nodes inside of one node. Raises UnsupportedError for the first that cannot be."""
