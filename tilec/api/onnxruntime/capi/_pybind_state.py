"""Names of onnxruntime's library, as its own Python code imports them."""

from typing import Any

from tilec.api.onnxruntime_names import package_name

from .onnxruntime_pybind11_state import *  # noqa: F403


def __getattr__(name: str) -> Any:
    return package_name("onnxruntime.capi._pybind_state", name)
