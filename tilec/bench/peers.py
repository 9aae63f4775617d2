"""Runtimes that a compiled model can be timed against."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tilec.bench.runners import Array, Runner
from tilec.errors import TilecError, UnavailableError, UsageError, did_you_mean
from tilec.extras import install
from tilec.onnxruntime_package import import_onnxruntime

CPU = "CPUExecutionProvider"

CUDA = "CUDAExecutionProvider"

GPU_PROVIDERS = {"onnxruntime-cuda": (CUDA,), "tensorrt": ("TensorrtExecutionProvider", CUDA)}
"""Peers on GPUs -> the providers of onnxruntime that run them; each runs what those before it do not."""

Peer = Callable[[Path, Mapping[str, Array], int], Runner]
"""Constructs a runner from (model, feeds, threads)."""


def onnxruntime_options(threads: int) -> Any:
    """Options of an onnxruntime session on so many threads."""
    options = import_onnxruntime().SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return options


def openvino_properties(threads: int) -> dict[str, str | int]:
    """Properties of a model compiled for OpenVINO's CPU plugin on so many threads."""
    return {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "EXECUTION_MODE_HINT": "ACCURACY",  # f32 stays f32 where the processor has bf16
    }


def onnxruntime(model: Path, feeds: Mapping[str, Array], threads: int, providers: Sequence[str] = ()) -> Runner:
    """A runner of the model on providers of onnxruntime, that of CPUs the last, inputs and outputs bound to memory of
    the device that runs it."""
    ort = import_onnxruntime()
    options = onnxruntime_options(threads)
    begin = time.perf_counter()
    try:
        session: Any = ort.InferenceSession(str(model), options, [*providers, CPU])
        seconds = time.perf_counter() - begin
        names = [output.name for output in session.get_outputs()]
        values = dict(zip(names, session.run(names, dict(feeds)), strict=True))
    except Exception as error:  # its exceptions share no base class
        raise TilecError(f"onnxruntime cannot run the model: {str(error).splitlines()[0]}", model.name) from error
    binding, memory = session.io_binding(), "cuda" if providers else "cpu"
    for name, array in feeds.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array), memory, 0))
    for name, array in values.items():
        binding.bind_ortvalue_output(name, ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array), memory, 0))

    def run() -> None:
        session.run_with_iobinding(binding)
        if providers:
            binding.synchronize_outputs()

    return Runner(run, seconds)


def openvino(model: Path, feeds: Mapping[str, Array], threads: int) -> Runner:
    """A runner of the model on OpenVINO's CPU plugin, for the shapes of `feeds`, in the model's own precision."""
    import openvino as ov

    inputs = {name: np.ascontiguousarray(array) for name, array in feeds.items()}
    begin = time.perf_counter()
    try:
        core: Any = ov.Core()
        read = core.read_model(str(model))
        read.reshape({name: list(array.shape) for name, array in inputs.items()})
        request: Any = core.compile_model(read, "CPU", openvino_properties(threads)).create_infer_request()
        seconds = time.perf_counter() - begin
        for name, array in inputs.items():
            request.set_tensor(name, _openvino_tensor(array))
        request.infer()
    except Exception as error:  # its exceptions share no base class
        raise TilecError(f"openvino cannot run the model: {str(error).strip().splitlines()[-1]}", model.name) from error
    return Runner(request.infer, seconds)


def _openvino_tensor(array: Array) -> Any:
    """An array as a tensor of OpenVINO, which takes arrays of bf16 as bits of a type that NumPy has."""
    import openvino as ov

    if array.dtype.name == "bfloat16":
        return ov.Tensor(array.view(np.uint16), ov.Shape(array.shape), ov.Type.bf16)
    return ov.Tensor(array, shared_memory=True)


PEERS: dict[str, Peer] = {
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    **{name: partial(onnxruntime, providers=providers) for name, providers in GPU_PROVIDERS.items()},
}


def chosen(names: Sequence[str]) -> dict[str, Peer]:
    """The peers of these names. Raises UsageError for an unknown one, UnavailableError for one that is not
    installed."""
    for name in names:
        if name not in PEERS:
            near = did_you_mean(name, PEERS)
            hint = f"Did you mean {near!r}?" if near else f"Known: {', '.join(PEERS)}."
            raise UsageError(f"nothing to compare with is called {name!r}", "--against", hint)
        providers = GPU_PROVIDERS.get(name, ())
        if not providers and find_spec(name) is None:
            raise UnavailableError(f"{name} is not installed", "--against", install("bench"))
        if not {*providers} <= {*import_onnxruntime().get_available_providers()}:
            raise UnavailableError(
                f"this onnxruntime has no {providers[0]}", "--against", "pip install onnxruntime-gpu"
            )
    return {name: PEERS[name] for name in dict.fromkeys(names)}
