"""`python -m tests.torch_models.one NAME TYPE BACKEND [by]`: one model, as JSON on the last line of the output.

BACKEND is one of torch.compile, or `exported`: `tilec.from_exported` at the sizes of the first call. `by` is `tilec` or
`onnxruntime`: then that runs what the translation made, which takes seconds instead of a minute.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import logging
import os
import resource
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree

from tests.torch_models.case import Call, Case
from tests.torch_models.judge import faults, other_strides, worst
from tests.torch_models.models import CASES

os.environ.setdefault("TILEC_WHILE_COMPILING", "wait")  # compiled code is judged, not what serves before

MEMORY = 12 << 30
"""Bytes that a process may write to."""


def main(name: str, kind: str, backend: str, by: str = "tilec") -> None:
    """Print what became of a model."""
    limit_memory()
    logging.getLogger("torch").setLevel(logging.ERROR)
    model, calls = prepared(CASES[name], kind)
    said: list[str] = []
    if missing := not_in_pytorch(model, calls, kind):
        print(json.dumps({"faults": [], "not_in_pytorch": missing}))
        return
    with tempfile.TemporaryDirectory(prefix="tilec-models-") as cache, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        taken = Taken(Path(cache), by)
        seen: dict[str, Any] = {}
        try:
            ours = backend in ("tilec", "exported")
            with torch.no_grad(), taken.watched() if ours else contextlib.nullcontext():
                if backend == "exported":
                    seen = _judged(model, calls[:1], kind, taken.exported(calls[0]))
                else:
                    compiler = taken.backend if ours else backend
                    seen = _judged(model, calls, kind, functools.partial(torch.compile, backend=compiler))
        except Exception as fault:
            said.append(f"fails: {type(fault).__name__}: {str(fault)[:300]}")
            print(traceback.format_exc(), file=sys.stderr)
        seen |= {"graphs": torch._dynamo.utils.counters["stats"]["unique_graphs"], **taken.figures()}
    warned = sorted({str(each.message) for each in caught if "PyTorch runs a graph" in str(each.message)})
    seen["faults"] = said + seen.get("faults", []) + [f"rescued: {each}" for each in warned]
    print(json.dumps(seen))


def not_in_pytorch(model: nn.Module, calls: list[Call], kind: str) -> str:
    """Why eager PyTorch does not run a model in a type, "" where it does."""
    try:
        with torch.no_grad():
            for call in calls:
                _called(model, copy.deepcopy(call), kind)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def limit_memory() -> None:
    """Let this process end where it would take more than a test may."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


def prepared(case: Case, kind: str) -> tuple[nn.Module, list[Call]]:
    """A model in a type, and its calls."""
    torch.backends.mha.set_fastpath_enabled(False)  # eager kernels of one whole layer that no compiler sees
    torch.manual_seed(0)
    model = _without_zeros(case.build().eval())
    calls = case.calls(model)
    if kind == "f16":
        return model.half(), [as_type(call, torch.float16) for call in calls]
    return model, calls


def _without_zeros(model: nn.Module) -> nn.Module:
    """The model with noise in the place of parameters that are 0, whose use could not be seen."""
    for parameter in model.parameters():
        if parameter.is_floating_point() and type(parameter.data) is Tensor and not parameter.any():
            nn.init.normal_(parameter, std=0.05)
    return model


def _judged(model: nn.Module, calls: list[Call], kind: str, compiled: Callable[[nn.Module], Any]) -> dict[str, Any]:
    """The faults, the largest error, the results that lie otherwise in memory, seconds of the first call."""
    said: list[str] = []
    strides: list[str] = []
    seconds, largest = 0.0, 0.0
    judge = ""
    run = compiled(copy.deepcopy(model))
    for number, call in enumerate(calls):
        eager, exact, judge = reference(model, call, kind)
        given = copy.deepcopy(call)
        before = _seconds()
        ours = _called(run, given, kind)
        seconds = seconds or _seconds() - before
        said += [f"call {number}, {each}" for each in faults(ours, eager, exact, kind)]
        strides += [f"call {number}, {each}" for each in other_strides(ours, eager)]
        largest = max(largest, worst(ours, exact))
    return {"faults": said, "strides": strides, "error": largest, "seconds": seconds, "judge": judge}


def reference(model: nn.Module, call: Call, kind: str) -> tuple[Any, Any, str]:
    """The results of eager PyTorch, in these types and exactly, each with the arguments after the call, and how exact
    ones are made: in `float64`, or by `eager` PyTorch on other last bits where it has not all of a model in float64."""
    eager = _called(model, copy.deepcopy(call), kind)
    if (wide := in_float64(model)) is not None:
        with contextlib.suppress(Exception):  # a kernel that there is not
            return eager, _called(wide, as_type(call, torch.float64), "f64"), "float64"
    return eager, _called(model, _nudged(call), kind), "eager"


def in_float64(model: nn.Module) -> nn.Module | None:
    """A copy of a model in float64: quantised weights are the numbers that their codes stand for. None where inputs are
    quantised, too: which code a number becomes depends on its last bits."""
    try:
        copied = copy.deepcopy(model)
        for module in copied.modules():
            for name, parameter in list(module.named_parameters(recurse=False)):
                weight = parameter.data
                if type(weight) is Tensor:
                    continue
                if getattr(weight, "act_quant_kwargs", None) is not None:
                    return None
                setattr(module, name, nn.Parameter(weight.dequantize().double(), requires_grad=False))
        return copied.double()
    except Exception:
        return None


def _called(run: Callable[..., Any], call: Call, kind: str) -> Any:
    """The results, and the arguments, which a call may have written to."""
    arguments, named = call
    with torch.autocast("cpu", torch.bfloat16) if kind == "bf16" else contextlib.nullcontext():
        return run(*arguments, **named), _tensors_of(call)


def _tensors_of(call: Call) -> list[Any]:
    return [_pytree.tree_leaves(each) for each in (*call[0], *call[1].values())]


def as_type(call: Call, dtype: torch.dtype) -> Call:
    """A copy of the arguments with floating-point tensors of another type."""
    copied = copy.deepcopy(call)
    made: Call = _pytree.tree_map(functools.partial(_converted, dtype=dtype), copied)
    return made


def _converted(leaf: Any, dtype: torch.dtype) -> Any:
    if isinstance(leaf, Tensor):
        return leaf.to(dtype) if leaf.is_floating_point() else leaf
    for layer in getattr(leaf, "layers", ()) if not isinstance(leaf, nn.Module) else ():  # a cache of transformers
        for each, value in vars(layer).items():
            if isinstance(value, Tensor) and value.is_floating_point():
                setattr(layer, each, value.to(dtype))
        if isinstance(getattr(layer, "dtype", None), torch.dtype):
            layer.dtype = dtype
    for inner in ("self_attention_cache", "cross_attention_cache"):
        if hasattr(leaf, inner):
            _converted(getattr(leaf, inner), dtype)
    return leaf


def _nudged(call: Call) -> Call:
    """A copy of the arguments, a few last bits off, as sums in another order are: how far results then differ is how
    exact those of eager PyTorch are where codes of quantised numbers may be either of two."""
    made: Call = _pytree.tree_map(
        lambda leaf: (
            leaf * (1 + 1e-6 * torch.randn_like(leaf))
            if isinstance(leaf, Tensor) and leaf.is_floating_point()
            else leaf
        ),
        copy.deepcopy(call),
    )
    return made


def _seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


class Taken:
    """The backend, and what it took of a model's graphs."""

    def __init__(self, cache: Path, by: str) -> None:
        self._cache, self._by = cache, by
        self.total, self.taken, self.compilations = 0, 0, 0
        self.left: Counter[str] = Counter()
        self.nodes, self.native = 0, 0
        self.reasons: Counter[str] = Counter()

    @property
    def backend(self) -> Callable[..., Any]:
        """Compiles into a cache of its own."""
        from tilec.torch_backend import compile_graph

        return functools.partial(compile_graph, options={"cache": str(self._cache)})

    def exported(self, call: Call) -> Callable[[nn.Module], Any]:
        """Exports a model, and compiles the program."""
        from tilec.torch_backend.exported_model import from_exported

        arguments, named = copy.deepcopy(call)
        cache = str(self._cache)
        return lambda model: from_exported(torch.export.export(model, arguments, named), cache=cache)

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Listen to what is told of graphs, and look at what becomes models."""
        from tilec.torch_backend import compiled_graph, exported_model, exported_program, partition

        tell, translate, opened = partition.tell, compiled_graph.translate, compiled_graph._opened

        def told(report: Any, strict: bool) -> None:
            self.total += report.calls
            self.taken += report.native
            self.left.update(f"{each.operator}: {each.reason}" for each in report.kept.values())
            tell(report, strict)

        def translated(*given: Any, **more: Any) -> Any:
            made = translate(*given, **more)
            self.compilations += 1
            self._placed(made.model)
            return made

        session = exported_model.InferenceSession
        partition.tell = told
        compiled_graph.translate = exported_program.translate = translated
        if self._by == "onnxruntime":
            compiled_graph._opened = exported_model.InferenceSession = _Peer
        try:
            yield
        finally:
            partition.tell, compiled_graph._opened, exported_model.InferenceSession = tell, opened, session
            compiled_graph.translate = exported_program.translate = translate

    def _placed(self, model: Any) -> None:
        """Count what of a translated model is native."""
        from tilec.importer import import_model

        path = self._cache / "translated.onnx"
        path.write_bytes(model.SerializeToString())
        placement = import_model(path, fallback="allow").graph.placement
        self.nodes += placement.total
        self.native += placement.total - len(placement.fallback)
        self.reasons.update(f"{each.op}: {each.reason}" for each in placement.fallback)

    def figures(self) -> dict[str, Any]:
        """All counts."""
        return {
            "total": self.total, "taken": self.taken, "compilations": self.compilations,
            "left": dict(self.left.most_common()), "nodes": self.nodes, "native": self.native,
            "reasons": dict(self.reasons.most_common(5)),
        }  # fmt: skip


class _Peer:
    """onnxruntime in the place of a session. It has no bf16: its numbers are f32 there, and results are rounded."""

    def __init__(self, data: bytes, *_options: Any, **_more: Any) -> None:
        import onnx
        import onnxruntime

        model = onnx.load_from_string(data)
        self._rounded = [each.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 for each in model.graph.output]
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        wide = without_bf16(model).SerializeToString()
        self._session = onnxruntime.InferenceSession(wide, options, providers=["CPUExecutionProvider"])

    def run(self, names: None, feeds: Mapping[str, Any]) -> Any:
        import ml_dtypes
        import numpy as np

        bf16 = np.dtype(ml_dtypes.bfloat16)
        wide = {name: each.astype(np.float32) if each.dtype == bf16 else each for name, each in feeds.items()}
        made = self._session.run(names, wide)
        return [each.astype(bf16) if rounded else each for each, rounded in zip(made, self._rounded, strict=True)]

    def addressed(self, _shapes: Any) -> None:
        return None


def without_bf16(model: Any) -> Any:
    """A model with f32 in the place of bf16."""
    import numpy as np
    import onnx

    narrow, wide, graph = onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT, model.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == narrow:
            value.type.tensor_type.elem_type = wide
    attributes = [each for node in graph.node for each in node.attribute]
    for attribute in attributes:
        if attribute.name in ("to", "dtype") and attribute.i == narrow:
            attribute.i = wide
    for tensor in (*graph.initializer, *(each.t for each in attributes if each.HasField("t"))):
        if tensor.data_type == narrow:
            array = onnx.numpy_helper.to_array(tensor).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    return model


if __name__ == "__main__":
    main(*sys.argv[1:])
