"""The two sides of a comparison, each constructed in a process of its own: onnxruntime and the compiled model."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tilec.errors import TilecError, UnavailableError, UsageError
from tilec.onnxruntime_package import import_onnxruntime
from tilec.verify.compare import compare
from tilec.verify.remote import Remote

if TYPE_CHECKING:
    import onnx

    from tilec.ir.plan import Plan
    from tilec.verify.groups import GroupCheck
    from tilec.verify.inputs import Array
    from tilec.verify.step_checks import Stale

LATENCY_RUNS = 5
"""Runs of which the fastest is the latency, as far as they take less than `LATENCY_SECONDS`."""

LATENCY_SECONDS = 0.5
"""Seconds of runs after which none is added: of slow models a run differs little from the next."""

LARGEST_MESSAGE = 1 << 30
"""Bytes of a model up to which its constants are in its own file; protobuf is limited to 2 GiB."""


NO_STATES: Mapping[str, str] = MappingProxyType({})


class Reference:
    """The model on onnxruntime's CPU provider; `data` is the folder of its external data if that is not its own,
    `states` maps outputs to the inputs whose memory they have."""

    def __init__(
        self,
        model: Path,
        threads: int | None = None,
        data: Path | None = None,
        states: Mapping[str, str] = NO_STATES,
    ) -> None:
        from tilec.verify.integer_weights import has_int8_weights

        try:
            onnxruntime = import_onnxruntime()
        except ImportError as error:
            raise UnavailableError(f"onnxruntime is not installed: {error}", hint="Install onnxruntime.") from error
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # errors are raised
        # It runs twice: packing weights would only take memory.
        options.add_session_config_entry("session.disable_prepacking", "1")
        # Its quantised products round biases to units of the sum (seen: 1e-5 of the largest result).
        options.add_session_config_entry("session.disable_quant_qdq", "1")
        level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        quantised = has_int8_weights(model)
        # Of a quantised recurrence each of its threads takes a part of the batch, and quantises states over that alone.
        options.intra_op_num_threads = threads or (1 if quantised else 0)
        if quantised:
            # The extended level rewrites int8 weights as uint8, of which no processor saturates a sum.
            level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
            options.add_session_config_entry("session.x64quantprecision", "1")
        options.graph_optimization_level = level
        opened: str | bytes = str(model)
        if data is not None:
            opened = model.read_bytes()
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(data))
        try:
            self._session: Any = onnxruntime.InferenceSession(opened, options, ["CPUExecutionProvider"])
        except Exception as error:  # its exceptions share no base class
            raise TilecError(f"onnxruntime cannot load the model: {_first_line(error)}", model.name) from error
        self._outputs = [output.name for output in self._session.get_outputs()]
        self._states = states

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs by name."""
        return self.chosen(feeds, self._outputs)

    def chosen(self, feeds: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        """Some of the outputs by name. Raises TilecError."""
        try:
            arrays = self._bound(feeds, names) if self._states else self._session.run(list(names), dict(feeds))
        except Exception as error:  # its exceptions share no base class
            raise TilecError(f"onnxruntime cannot run the model: {_first_line(error)}") from error
        return dict(zip(names, arrays, strict=True))

    def _bound(self, feeds: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
        """Some of the outputs, states in the memory of copies of the inputs."""
        value = import_onnxruntime().OrtValue.ortvalue_from_numpy
        given = {name: value(np.array(array, order="C")) for name, array in feeds.items()}
        binding = self._session.io_binding()
        for name, array in given.items():
            binding.bind_ortvalue_input(name, array)
        for name in self._outputs:
            if name in self._states:
                binding.bind_ortvalue_output(name, given[self._states[name]])
            else:
                binding.bind_output(name)
        self._session.run_with_iobinding(binding)
        found = dict(zip(self._outputs, binding.copy_outputs_to_cpu(), strict=True))
        return [found[name] for name in names]

    def attempted(self, feeds: Mapping[str, Any], names: Sequence[str] | None = None) -> dict[str, Any] | TilecError:
        """Some of the outputs by name, or all of them, or why it cannot run: it lives on."""
        try:
            return self.chosen(feeds, self._outputs if names is None else names)
        except TilecError as error:
            return error

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
        with Remote("onnxruntime", Reference, opened, None, model.parent) as reference:
            reference.ready()
            arrays: dict[str, Array] = reference.call("run", feeds)
    return {node: arrays[tensor] for node, tensor in wanted.items()}


def write_watched(model: Path, proto: onnx.ModelProto, tensors: Iterable[str], folder: Path) -> Path:
    """Write the model with these tensors as further outputs into a folder. Its external data stays where it is:
    neither onnxruntime nor onnx opens data that a link leads to."""
    import onnx

    watched = onnx.ModelProto()
    watched.CopyFrom(proto)
    outputs = {output.name for output in proto.graph.output}
    watched.graph.output.extend(onnx.ValueInfoProto(name=name) for name in tensors if name not in outputs)
    path = folder / model.name
    onnx.save(watched, str(path))
    return path


def with_one_output(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model without its other outputs and the nodes that only they depend on."""
    import onnx

    pruned = onnx.ModelProto()
    pruned.CopyFrom(model)
    wanted = {name}
    nodes = []
    for node in reversed(pruned.graph.node):
        if wanted.intersection(node.output):
            nodes.append(node)
            wanted |= read_names(node)
    ports = [port for port in pruned.graph.output if port.name == name]
    del pruned.graph.node[:], pruned.graph.output[:]
    pruned.graph.node.extend(reversed(nodes))
    pruned.graph.output.extend(ports)
    return pruned


def read_names(node: onnx.NodeProto) -> set[str]:
    """Names of tensors that a node reads, those of its inner graphs included."""
    inner = [graph for attribute in node.attribute for graph in (attribute.g, *attribute.graphs)]
    nested = (name for graph in inner for each in graph.node for name in read_names(each))
    return {*node.input, *nested, *(port.name for graph in inner for port in graph.output)}


def _loaded(model: Path, data: Path | None = None) -> onnx.ModelProto:
    """The model of a file, with external data of a folder, its own by default. Raises TilecError."""
    import onnx

    try:
        proto = onnx.load(str(model), load_external_data=False)
        onnx.load_external_data_for_model(proto, str(data or model.parent))
        return proto
    except Exception as error:  # protobuf's exceptions are no part of its interface
        raise TilecError(f"onnx cannot load the model: {_first_line(error)}", model.name) from error


class OnnxReference:
    """The model on ONNX's own reference evaluator: slow, in NumPy, and independent of onnxruntime. `data` is the folder
    of its external data if that is not its own."""

    def __init__(self, model: Path, data: Path | None = None) -> None:
        self._model = _loaded(model, data)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs by name. Raises TilecError."""
        from onnx.reference import ReferenceEvaluator

        try:
            evaluator: Any = ReferenceEvaluator(self._model)
            outputs = evaluator.run(None, dict(feeds))
        except Exception as error:  # it raises whatever its operators raise
            raise TilecError(f"ONNX's reference evaluator cannot run the model: {_first_line(error)}") from error
        return dict(zip(evaluator.output_names, outputs, strict=True))

    def output(self, name: str, feeds: Mapping[str, Any]) -> Any:
        """One output, of which only the nodes that it depends on are computed: the evaluator does not have all
        operators. Raises TilecError."""
        from onnx.reference import ReferenceEvaluator

        try:
            evaluator: Any = ReferenceEvaluator(with_one_output(self._model, name))
            return evaluator.run([name], dict(feeds))[0]
        except Exception as error:  # it raises whatever its operators raise
            raise TilecError(f"ONNX's reference evaluator cannot run the model: {_first_line(error)}") from error


def _alone(model: onnx.ModelProto, name: str, feeds: Mapping[str, Any]) -> Any:
    """The only output of a model on onnxruntime. Raises TilecError."""
    import onnx

    with tempfile.TemporaryDirectory(prefix="tilec-") as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, str(path), save_as_external_data=model.ByteSize() > LARGEST_MESSAGE)
        return Reference(path).chosen(feeds, [name])[name]


class DefinedReference:
    """The model on onnxruntime, ONNX's operators as the functions that define them."""

    def __init__(self, model: Path) -> None:
        self._model = _loaded(model)

    def output(self, name: str, feeds: Mapping[str, Any]) -> Any:
        """One output, of which only the nodes that it depends on are computed. Raises TilecError."""
        from tilec.verify.defined_model import in_definitions

        return _alone(in_definitions(with_one_output(self._model, name)), name, feeds)


class DoubleReference:
    """The model in double precision on onnxruntime, which has no such kernels of some operators."""

    def __init__(self, model: Path) -> None:
        self._model = _loaded(model)

    def output(self, name: str, feeds: Mapping[str, Any]) -> Any:
        """One output, rounded to single precision where the model's is, of which only the nodes that it depends on are
        computed. Raises TilecError."""
        import numpy as np
        import onnx

        from tilec.verify.wider_model import widened

        wide = {key: a.astype(np.float64) if a.dtype == np.float32 else a for key, a in feeds.items()}
        result = _alone(widened(with_one_output(self._model, name)), name, wide)
        declared = next(port for port in self._model.graph.output if port.name == name).type.tensor_type.elem_type
        single = result.dtype == np.float64 and declared != onnx.TensorProto.DOUBLE
        return result.astype(np.float32) if single else result


class Compiled:
    """The compiled model of a folder."""

    def __init__(self, folder: Path, threads: int | None = None) -> None:
        from tilec.runtime import load

        self._folder = folder
        self._session = load(folder, threads=threads, check=True)

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs by name. Raises TilecError when a second run gives other bytes."""
        told = self.run_twice(feeds)
        if isinstance(told, UsageError):
            raise told
        first, unstable = told
        if unstable:
            raise TilecError(f"two runs on the same inputs give different {unstable[0]}")
        return first

    def run_twice(
        self, feeds: Mapping[str, Any], loose: Collection[str] = ()
    ) -> tuple[dict[str, Any], tuple[str, ...]] | UsageError:
        """Outputs by name, and the names of those that a second run gives other bytes; or why the inputs are refused,
        after which it lives on. The `loose` ones may differ: they depend on a part run by onnxruntime."""
        try:
            first = self._session.run(feeds)
        except UsageError as error:
            return error
        second = self._session.run(feeds)
        return first, tuple(
            n for n, array in first.items() if n not in loose and array.tobytes() != second[n].tobytes()
        )

    def check_groups(
        self,
        plan: Plan,
        kernels: Mapping[str, Any],
        feeds: Mapping[str, Any],
        chosen: Collection[str],
        special: bool = False,
    ) -> tuple[list[GroupCheck], Stale | None]:
        """Checks of the chosen groups of the plan, launch by launch, and the first group whose operands had changed;
        with `special` values among the operands if asked for.

        Raises UnavailableError when the back end runs no launch alone.
        """
        import numpy as np

        from tilec.verify.groups import Constants
        from tilec.verify.places import memory_places
        from tilec.verify.step_checks import StepChecks

        generator = np.random.default_rng(0) if special else None
        checks = StepChecks(plan, memory_places(plan, kernels), Constants(plan, self._folder), chosen, generator)
        own = {name: np.array(array) for name, array in feeds.items()} if special else feeds
        self._session.stepwise(own, checks)
        return checks.checks, checks.stale

    def place(self) -> str:
        """What runs the model: the host, or a GPU by its name."""
        return self._session.runs_on

    def latency(self, feeds: Mapping[str, Array]) -> tuple[float, int]:
        """Seconds of the fastest of a few runs, and the number of threads used."""
        times: list[float] = []
        placed = self._session.to_device(feeds)
        while len(times) < LATENCY_RUNS and sum(times) < LATENCY_SECONDS:
            begin = time.perf_counter()
            self._session.run(placed)
            times.append(time.perf_counter() - begin)
        return min(times), self._session.threads


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
