"""Registry of the functions that translate ONNX's operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilec.importer.operator import Op
from tilec.importer.value import Value

Result = Value | Sequence[Value | None]
Handler = Callable[[Op], Result]

_REGISTRY: dict[str, list[tuple[int, int, Handler]]] = {}
NEWEST = 1 << 30


def operator(*names: str, since: int = 1, until: int = NEWEST) -> Callable[[Handler], Handler]:
    """Register a function for operators of ONNX's own domain, for models of opset `since` to `until`."""

    def register(handler: Handler) -> Handler:
        for name in names:
            _REGISTRY.setdefault(name, []).append((since, until, handler))
        return handler

    return register


def handler_of(name: str, opset: int) -> Handler | None:
    """The function that translates an operator at an opset."""
    return next((h for since, until, h in _REGISTRY.get(name, ()) if since <= opset <= until), None)


def known_operators() -> tuple[str, ...]:
    """Every operator that has a function, sorted."""
    return tuple(sorted(_REGISTRY))
