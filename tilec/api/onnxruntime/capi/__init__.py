"""The modules of `onnxruntime.capi` that packages import from."""

from . import _pybind_state as _pybind_state
from . import onnxruntime_inference_collection as onnxruntime_inference_collection
from . import onnxruntime_pybind11_state as onnxruntime_pybind11_state
