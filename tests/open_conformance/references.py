"""What others compute for a case at any sizes: onnxruntime and ONNX's reference. What both accept is legal."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tests.conformance.judge import NEWEST_IR
from tilec.verify.wider_model import widened

Outputs = list[Any]

_SINGLE: Mapping[int, int] = {TensorProto.FLOAT16: TensorProto.FLOAT, TensorProto.BFLOAT16: TensorProto.FLOAT}


def in_child(function: Callable[[], Any]) -> Any:
    """The result of a function that may end its process; None where it does."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            with os.fdopen(write, "wb") as pipe:
                pickle.dump(function(), pipe)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None


class References:
    """The peers that can run a model at the sizes of its case; ONNX's reference also without 16-bit roundings between
    operators, of which peers have more than an operator demands."""

    def __init__(self, model: Any, feeds: Mapping[str, Any], outputs: Sequence[str]) -> None:
        self._outputs = list(outputs)
        candidates = [each(model) for each in (_onnxruntime, _onnx, _in_single)]
        self._peers = [each for each in candidates if each is not None and self._accepts(each, feeds)]

    def _accepts(self, peer: Any, feeds: Mapping[str, Any]) -> bool:
        return bool(in_child(lambda: self._run(peer, feeds) is not None))

    def expected(self, feeds: Mapping[str, Any]) -> list[Outputs]:
        """The results of all peers; none where one of them refuses the inputs, or dies."""
        results: list[Outputs | None] = in_child(lambda: [self._run(peer, feeds) for peer in self._peers]) or []
        known = [each for each in results if each is not None]
        return known if len(known) == len(results) else []

    def _run(self, peer: Any, feeds: Mapping[str, Any]) -> Outputs | None:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return list(peer.run(self._outputs, dict(feeds)))
        except Exception:  # a peer may refuse in any way
            return None


def _onnxruntime(model: Any) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    copy = type(model)()
    copy.CopyFrom(model)
    copy.ir_version = min(copy.ir_version, NEWEST_IR)
    try:
        return onnxruntime.InferenceSession(copy.SerializeToString(), options, ["CPUExecutionProvider"])
    except Exception:  # an operator or a type that it does not have
        return None


def _onnx(model: Any) -> Any:
    from onnx.reference import ReferenceEvaluator

    try:
        return ReferenceEvaluator(model)
    except Exception:  # an operator that it does not have
        return None


class _InSingle:
    """ONNX's reference of a model with single precision in place of its 16-bit floats; results are rounded once."""

    def __init__(self, model: Any, runs: Any) -> None:
        self._runs = runs
        self._types = {
            port.name: helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)
            for port in model.graph.output
            if port.type.tensor_type.elem_type in _SINGLE
        }

    def run(self, outputs: Sequence[str], feeds: Mapping[str, Any]) -> Outputs:
        halves = {helper.tensor_dtype_to_np_dtype(code) for code in _SINGLE}
        wide = {name: a.astype(np.float32) if getattr(a, "dtype", None) in halves else a for name, a in feeds.items()}
        results = zip(outputs, self._runs.run(outputs, wide), strict=True)
        return [a.astype(self._types[name]) if name in self._types else a for name, a in results]


def _in_single(model: Any) -> Any:
    wide = widened(model, _SINGLE)
    runs = _onnx(wide) if wide != model else None
    return runs and _InSingle(model, runs)
