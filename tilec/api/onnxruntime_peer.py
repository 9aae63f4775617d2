"""onnxruntime in the place of a compiled model, while that is being made."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilec.api.errands import Gate
from tilec.errors import TilecError, UnavailableError, UsageError
from tilec.onnxruntime_package import import_onnxruntime


class OnnxruntimePeer:
    """A model on onnxruntime's CPU provider, called like a loaded model."""

    def __init__(self, model: Path, threads: int | None, sizes: Mapping[str, int], gate: Gate) -> None:
        """A run opens the gate. Raises UnavailableError without onnxruntime, TilecError when it cannot load the
        model."""
        try:
            onnxruntime = import_onnxruntime()
        except ImportError as error:
            raise UnavailableError(
                f"onnxruntime cannot be imported: {error}",
                hint='Install it, or open the session with while_compiling="wait".',
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        options.log_severity_level = 3
        for name, size in sizes.items():
            options.add_free_dimension_override_by_name(name, size)
        try:
            self._session: Any = onnxruntime.InferenceSession(str(model), options, ["CPUExecutionProvider"])
        except Exception as error:  # its exceptions share no base class
            raise TilecError(f"onnxruntime cannot load the model: {_first_line(error)}", model.name) from error
        self.gate = gate
        self._names = [output.name for output in self._session.get_outputs()]

    def run(self, feeds: Mapping[str, Any], out: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Outputs by name; those named in `out` are written there. Raises UsageError as onnxruntime complains."""
        given = {name: value for name, value in feeds.items() if value is not None}
        try:
            results = dict(zip(self._names, self._session.run(self._names, given), strict=True))
        except Exception as error:  # its exceptions share no base class
            raise UsageError(f"onnxruntime: {_first_line(error)}") from error
        if not self.gate.is_open:
            self.gate.open()
        for name, array in (out or {}).items():
            np.copyto(array, results[name])
            results[name] = array
        return results


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
