"""Runtimes that hold one model for all sizes; each is told which sizes are bound and which ranges the others have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from tests.traces.feeds import Array, Feeds, Interface
from tests.traces.trace import Trace
from tilec.bench.peers import onnxruntime_options, openvino_properties
from tilec.onnxruntime_package import import_onnxruntime


class Runtime(Protocol):
    """A loaded model."""

    def run(self, feeds: Feeds) -> None:
        """One inference."""

    def results(self) -> Mapping[str, Array]:
        """The outputs of the last inference by name."""


Load = Callable[[Path, Trace, Interface, int], Runtime]
"""Loads (model, trace, interface, threads)."""


class Tilec:
    """The model that was compiled into a folder."""

    def __init__(self, folder: Path, trace: Trace, interface: Interface, threads: int) -> None:
        import tilec

        self._session: Any = tilec.load(folder, threads=threads)
        self._found: Mapping[str, Array] = {}

    def run(self, feeds: Feeds) -> None:
        """One inference."""
        self._found = self._session.run(feeds)

    def results(self) -> Mapping[str, Array]:
        """The outputs of the last inference by name."""
        return self._found


class OnnxRuntime:
    """A session of onnxruntime's CPU provider."""

    def __init__(self, model: Path, trace: Trace, interface: Interface, threads: int) -> None:
        options = onnxruntime_options(threads)
        for symbol, size in trace.bound.items():
            options.add_free_dimension_override_by_name(symbol, size)
        self._session: Any = import_onnxruntime().InferenceSession(str(model), options, ["CPUExecutionProvider"])
        self._names = list(interface.outputs)
        self._found: list[Array] = []

    def run(self, feeds: Feeds) -> None:
        """One inference."""
        self._found = self._session.run(self._names, feeds)

    def results(self) -> Mapping[str, Array]:
        """The outputs of the last inference by name."""
        return dict(zip(self._names, self._found, strict=True))


class OpenVino:
    """A request of OpenVINO's CPU plugin, which keeps its results."""

    def __init__(self, model: Path, trace: Trace, interface: Interface, threads: int) -> None:
        import openvino as ov

        def extent(dim: int | str) -> Any:
            if isinstance(dim, int) or dim in trace.bound:
                return trace.bound[dim] if isinstance(dim, str) else dim
            return ov.Dimension(trace.open[dim].low, trace.open[dim].high)

        core: Any = ov.Core()
        read = core.read_model(str(model))
        read.reshape({each.name: [extent(dim) for dim in each.dims] for each in interface.inputs})
        self._request = core.compile_model(read, "CPU", openvino_properties(threads)).create_infer_request()
        self._tensor: Any = ov.Tensor
        self._names = interface.outputs

    def run(self, feeds: Feeds) -> None:
        """One inference."""
        for name, array in feeds.items():
            self._request.set_tensor(name, self._tensor(array, shared_memory=True))
        self._request.infer()

    def results(self) -> Mapping[str, Array]:
        """The outputs of the last inference by name."""
        return {name: self._request.get_tensor(name).data for name in self._names}


OURS, REFERENCE = "tilec", "onnxruntime"
PEERS: dict[str, Load] = {REFERENCE: OnnxRuntime, "openvino": OpenVino}
"""What tilec is compared with; the first is also the reference of all results."""
