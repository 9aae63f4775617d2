"""The classes of onnxruntime that are written in Python."""

from typing import Any

from tilec.api import InferenceSession, IOBinding, OrtDevice, OrtValue
from tilec.api.onnxruntime_names import package_name

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtValue", "Session"]

Session = InferenceSession


def __getattr__(name: str) -> Any:
    return package_name("onnxruntime.capi.onnxruntime_inference_collection", name)
