"""tilec compiles ONNX models for devices described in YAML and writes every decision down as JSON."""

from os.path import join
from typing import TYPE_CHECKING, Any

from tilec.version import __version__

if TYPE_CHECKING:
    from tilec.api import (
        ExecutionMode,
        ExecutionOrder,
        FeedError,
        GraphOptimizationLevel,
        InferenceSession,
        IOBinding,
        ModelMetadata,
        NodeArg,
        OrtDevice,
        OrtValue,
        RunOptions,
        SessionOptions,
        disable_telemetry_events,
        enable_telemetry_events,
        get_all_providers,
        get_available_providers,
        get_build_info,
        get_device,
        get_version_string,
        has_collective_ops,
        set_default_logger_severity,
        set_default_logger_verbosity,
        set_seed,
    )
    from tilec.api.stand_in import stand_in as as_onnxruntime
    from tilec.decoding import generate, generate_batch
    from tilec.pytorch import capture_rnn, from_exported, refit
    from tilec.runtime import Session, load

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "FeedError",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtDevice",
    "OrtValue",
    "RunOptions",
    "Session",
    "SessionOptions",
    "__version__",
    "as_onnxruntime",
    "capture_rnn",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "from_exported",
    "generate",
    "generate_batch",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "load",
    "refit",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]

_HOMES = {
    "Session": "runtime",
    "load": "runtime",
    "capture_rnn": "pytorch",
    "from_exported": "pytorch",
    "generate": "decoding",
    "generate_batch": "decoding",
    "refit": "pytorch",
}
_MODULES = ("as_onnxruntime", "capi")

# Where a program puts this module in onnxruntime's place by hand, `import onnxruntime.capi` looks for it here.
__path__.append(join(__path__[0], "api", "onnxruntime"))


def __getattr__(name: str) -> Any:
    """A public name, imported when it is first asked for: `tilec --help` needs no NumPy."""
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"tilec.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'tilec' has no attribute {name!r}")
    module = importlib.import_module(f"tilec.{_HOMES.get(name, 'api')}")
    value = globals()[name] = getattr(module, name)
    return value
