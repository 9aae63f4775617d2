"""The two sides of a comparison, each constructed in a process of its own: onnxruntime and the compiled model."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.errors import TilecError, UnavailableError
from tilec.verify.compare import compare
from tilec.verify.remote import Remote

if TYPE_CHECKING:
    import onnx

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

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs by name."""
        return self.chosen(feeds, self._outputs)

    def chosen(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Some of the outputs by name. Raises TilecError."""
        try:
            arrays = self._session.run(list(names), dict(feeds))
        except Exception as error:  # its exceptions share no base class
            raise TilecError(f"onnxruntime cannot run the model: {_first_line(error)}") from error
        return dict(zip(names, arrays, strict=True))

    def unrepeatable(self, feeds: Mapping[str, Any]) -> tuple[str, ...]:
        """Outputs that differ between two runs on the same inputs: random numbers."""
        first, second = self.run(feeds), self.run(feeds)
        return tuple(name for name in first if not compare(name, first[name], second[name], 0.0).passed)


def inner_tensors(model: Path, feeds: Mapping[str, Array], nodes: Collection[str]) -> dict[str, Array]:
    """First outputs of the named nodes of the model, by node, on onnxruntime. Raises TilecError."""
    import onnx

    proto = onnx.load(str(model), load_external_data=False)
    wanted = {node.name: node.output[0] for node in proto.graph.node if node.name in nodes and node.output[0]}
    with tempfile.TemporaryDirectory(prefix="tilec-") as folder:
        opened = write_watched(model, proto, wanted.values(), Path(folder))
        with Remote("onnxruntime", Reference, opened) as reference:
            reference.ready()
            arrays: dict[str, Array] = reference.call("run", feeds)
    return {node: arrays[tensor] for node, tensor in wanted.items()}


def write_watched(model: Path, proto: onnx.ModelProto, tensors: Iterable[str], folder: Path) -> Path:
    """Write the model with these tensors as further outputs into an empty folder, next to links to its external
    data."""
    import onnx

    watched = onnx.ModelProto()
    watched.CopyFrom(proto)
    outputs = {output.name for output in proto.graph.output}
    watched.graph.output.extend(onnx.ValueInfoProto(name=name) for name in tensors if name not in outputs)
    for beside in model.parent.iterdir():  # external data is named relative to the model
        if beside != model:
            (folder / beside.name).symlink_to(beside)
    path = folder / model.name
    onnx.save(watched, str(path))
    return path


class Compiled:
    """The compiled model of a folder."""

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        from tilec.runtime import load

        self._session = load(folder, threads=threads, check=True)

    def run(self, feeds: Mapping[str, Any], loose: Collection[str] = ()) -> dict[str, Any]:
        """Outputs by name. Raises TilecError when a second run gives other bytes, except for the `loose` ones, which
        depend on a part run by onnxruntime."""
        first = self._session.run(feeds)
        second = self._session.run(feeds)
        for name, array in first.items():
            if name not in loose and array.tobytes() != second[name].tobytes():
                raise TilecError(f"two runs on the same inputs give different {name}")
        return first

    def latency(self, feeds: Mapping[str, Array]) -> tuple[float, int]:
        """Seconds of the fastest of a few runs, and the number of threads used."""
        times = []
        for _ in range(LATENCY_RUNS):
            begin = time.perf_counter()
            self._session.run(feeds)
            times.append(time.perf_counter() - begin)
        return min(times), self._session.threads


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
