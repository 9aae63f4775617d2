"""The import stage: translation of ONNX models to graphs of tensor expressions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilec.importer.convert import Imported, UnsupportedModelError, import_model
    from tilec.ir.graph import Unsupported

__all__ = ["Imported", "Unsupported", "UnsupportedModelError", "import_model"]


def __getattr__(name: str) -> Any:
    """A name of the stage, imported when it is first asked for: who reads a file's header needs no translation."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module("tilec.importer.convert"), name)
    return value
