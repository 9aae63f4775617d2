"""The two sides of a comparison, each to be made in a process of its own: onnxruntime, and what was compiled."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilec.errors import TilecError, UnavailableError
from tilec.verify.inputs import Array

LATENCY_RUNS = 5


class Reference:
    """The model on onnxruntime's CPU provider."""

    def __init__(self, model: Path, threads: int | None = None) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise UnavailableError(f"onnxruntime is not installed: {error}", hint="Install onnxruntime.") from error
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = threads or 0
        # It runs twice: packing weights would only take memory.
        options.add_session_config_entry("session.disable_prepacking", "1")
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        try:
            self._session: Any = onnxruntime.InferenceSession(str(model), options, ["CPUExecutionProvider"])
        except Exception as error:  # its exceptions share no base class
            raise TilecError(f"onnxruntime cannot load the model: {_first_line(error)}", model.name) from error
        self._outputs = [output.name for output in self._session.get_outputs()]

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Outputs by name."""
        try:
            arrays = self._session.run(self._outputs, dict(feeds))
        except Exception as error:  # its exceptions share no base class
            raise TilecError(f"onnxruntime cannot run the model: {_first_line(error)}") from error
        return dict(zip(self._outputs, arrays, strict=True))


class Compiled:
    """The compiled model of a folder."""

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        from tilec.runtime import load

        self._session = load(folder, threads=threads, check=True)

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Outputs by name. Raises TilecError when a second run gives other bytes."""
        first = self._session.run(feeds)
        second = self._session.run(feeds)
        for name, array in first.items():
            if array.tobytes() != second[name].tobytes():
                raise TilecError(f"two runs on the same inputs give different {name}")
        return {name: np.asarray(array) for name, array in first.items()}

    def latency(self, feeds: Mapping[str, Array]) -> tuple[float, int]:
        """Seconds of the fastest of a few runs, and the threads that took part."""
        times = []
        for _ in range(LATENCY_RUNS):
            begin = time.perf_counter()
            self._session.run(feeds)
            times.append(time.perf_counter() - begin)
        return min(times), self._session.threads


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
