"""tilec in the place of onnxruntime: `import tilec as onnxruntime`."""

from tilec.api.binding import IOBinding
from tilec.api.environment import (
    OrtDevice,
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
from tilec.api.feeds import FeedError
from tilec.api.header import ModelMetadata, NodeArg
from tilec.api.options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from tilec.api.session import InferenceSession
from tilec.api.values import OrtValue

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
    "SessionOptions",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]
