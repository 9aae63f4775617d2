"""The import stage: translation of ONNX models to graphs of tensor expressions."""

from tilec.importer.convert import Imported, UnsupportedModelError, import_model
from tilec.ir.graph import Unsupported

__all__ = ["Imported", "Unsupported", "UnsupportedModelError", "import_model"]
