"""Names of onnxruntime's library: functions, options, and its exceptions, which are those that tilec raises there."""

from typing import Any

from tilec.api import (
    ExecutionMode,
    ExecutionOrder,
    FeedError,
    GraphOptimizationLevel,
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
    has_collective_ops,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_seed,
)
from tilec.api.onnxruntime_names import package_name
from tilec.errors import ConfigError, TilecError, UnsupportedError, UsageError

__all__ = [
    "EPFail",
    "EngineError",
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "GraphOptimizationLevel",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelMetadata",
    "NoModel",
    "NoSuchFile",
    "NodeArg",
    "NotImplemented",
    "OrtDevice",
    "OrtValue",
    "RunOptions",
    "RuntimeException",
    "SessionOptions",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "has_collective_ops",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
]

InvalidArgument = FeedError
NoSuchFile = NoModel = UsageError
InvalidGraph = InvalidProtobuf = ConfigError
NotImplemented = UnsupportedError  # noqa: A001
Fail = EPFail = EngineError = RuntimeException = TilecError


def __getattr__(name: str) -> Any:
    return package_name("onnxruntime.capi.onnxruntime_pybind11_state", name)
