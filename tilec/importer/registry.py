"""Registry of the functions that translate ONNX's operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilec.importer.operator import Op
from tilec.importer.value import Value

Result = Value | Sequence[Value | None]
Handler = Callable[[Op], Result]

Demand = Callable[[Op], None]

_DEMANDS: dict[str, Demand] = {}
_REGISTRY: dict[tuple[str, str], list[tuple[int, int, Handler]]] = {}
NEWEST = 1 << 30

CONTRIB = "com.microsoft"
"""The domain of onnxruntime's contrib operators."""

ML = "ai.onnx.ml"
"""The domain of classical machine learning."""

TILEC = "ai.tilec"
"""The domain of operators that ONNX lacks."""


def operator(*names: str, since: int = 1, until: int = NEWEST, domain: str = "") -> Callable[[Handler], Handler]:
    """Register a function for operators of a domain (empty: ONNX's own), for models of opset `since` to `until`."""

    def register(handler: Handler) -> Handler:
        for name in names:
            _REGISTRY.setdefault((domain, name), []).append((since, until, handler))
        return handler

    return register


def handler_of(name: str, opset: int, domain: str = "") -> Handler | None:
    """The function that translates an operator at an opset of ONNX's own domain."""
    return next((h for since, until, h in _REGISTRY.get((domain, name), ()) if since <= opset <= until), None)


def demands(name: str) -> Callable[[Demand], Demand]:
    """Register what one of ONNX's operators demands of its inputs' sizes before the function that defines it is
    translated: the function's own nodes may not say it."""

    def register(demand: Demand) -> Demand:
        _DEMANDS[name] = demand
        return demand

    return register


def demand_of(name: str) -> Demand | None:
    """What one of ONNX's operators demands of sizes beside its function."""
    return _DEMANDS.get(name)


def known_operators(domain: str = "") -> tuple[str, ...]:
    """Every operator of a domain that has a function, sorted."""
    return tuple(sorted(name for known, name in _REGISTRY if known == domain))
