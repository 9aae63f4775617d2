"""What others compute for a case at any sizes: onnxruntime, which also says what is legal, and ONNX's reference."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.conformance.judge import NEWEST_IR

Outputs = list[Any]


class References:
    """The peers that can run a model at the sizes of its case."""

    def __init__(self, model: Any, feeds: Mapping[str, Any], outputs: Sequence[str]) -> None:
        self._outputs = list(outputs)
        candidates = [each(model) for each in (_onnxruntime, _onnx)]
        self._peers = [each for each in candidates if each is not None and self._run(each, feeds) is not None]

    def expected(self, feeds: Mapping[str, Any]) -> list[Outputs]:
        """The results of all peers that accept the inputs; none where the first peer refuses them."""
        results: list[Outputs] = []
        for peer in self._peers:
            found = self._run(peer, feeds)
            if found is None and not results:
                return []
            if found is not None:
                results.append(found)
        return results

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
