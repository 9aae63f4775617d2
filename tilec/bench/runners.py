"""What is timed, each in a process of its own: a compiled model, and the same model on another runtime.

Inputs and outputs are allocated once; a run reads and writes the same memory every time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilec.errors import TilecError, UnavailableError

Array = NDArray[np.generic]

MOST_RUNS = 10_000
"""In one round."""


class Runner:
    """Times `run`, a call without arguments that does one inference."""

    def __init__(self, run: Callable[[], object]) -> None:
        self._run = run

    def calibrate(self, seconds: float) -> int:
        """Warm up for about `seconds`; returns how many runs take that long."""
        begin = time.perf_counter()
        done = 0
        while done < MOST_RUNS and (done < 2 or time.perf_counter() - begin < seconds):
            self._run()
            done += 1
        return max(1, round(seconds * done / (time.perf_counter() - begin)))

    def round(self, runs: int) -> float:
        """Seconds of the median of `runs` inferences, after one that is not counted."""
        self._run()
        return median(self.times(runs))

    def times(self, runs: int) -> list[float]:
        """Seconds of each of `runs` inferences."""
        times = []
        for _ in range(runs):
            begin = time.perf_counter()
            self._run()
            times.append(time.perf_counter() - begin)
        return times


def compiled(folder: Path, feeds: Mapping[str, Array], threads: int) -> Runner:
    """A runner of the compiled model in `folder`."""
    from tilec.runtime import load

    session = load(folder, threads=threads)
    out = session.run(feeds)
    return Runner(lambda: session.run(feeds, out=out))


def onnxruntime(model: Path, feeds: Mapping[str, Array], threads: int) -> Runner:
    """A runner of the model on onnxruntime's CPU provider, inputs and outputs bound."""
    try:
        import onnxruntime as ort
    except ImportError as error:
        raise UnavailableError(f"onnxruntime is not installed: {error}", hint="Install onnxruntime.") from error
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    try:
        session: Any = ort.InferenceSession(str(model), options, ["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        values = dict(zip(names, session.run(names, dict(feeds)), strict=True))
    except Exception as error:  # its exceptions share no base class
        raise TilecError(f"onnxruntime cannot run the model: {str(error).splitlines()[0]}", model.name) from error
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array)))
    for name, array in values.items():
        binding.bind_ortvalue_output(name, ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array)))
    return Runner(lambda: session.run_with_iobinding(binding))
