"""The interface of ONNX's backend tests: `prepare`, `run_model`, `run_node` (onnx.backend.base.Backend)."""

from tilec.backend.backend import TilecBackend
from tilec.backend.rep import TilecRep

__all__ = [
    "TilecBackend",
    "TilecRep",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]

is_compatible = TilecBackend.is_compatible
prepare = TilecBackend.prepare
run_model = TilecBackend.run_model
run_node = TilecBackend.run_node
supports_device = TilecBackend.supports_device
