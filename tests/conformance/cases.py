"""The cases that come with onnx: node cases up to the newest opset that tilec reads, and the models of its wheel."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import onnx
from onnx import numpy_helper

NEWEST_OPSET = 26

FAMILIES = ("node", "simple", "light", "pytorch-converted", "pytorch-operator")

DataSet = tuple[list[Any], list[Any]]
"""Inputs and expected outputs, in the model's order."""


@dataclass(frozen=True)
class Case:
    """One case: `source` as onnx lists it; `operator` is what it is about, `expanded` says that a function's body
    stands in for it."""

    name: str
    family: str
    operator: str
    expanded: bool
    source: Any

    @property
    def tolerances(self) -> tuple[float, float]:
        """rtol and atol that onnx allows."""
        return self.source.rtol, self.source.atol

    def model(self) -> onnx.ModelProto:
        """The model, a copy of its own."""
        if self.family == "node":
            copy = onnx.ModelProto()
            copy.CopyFrom(self.source.model)
            return copy
        return onnx.load(_file(self.source))

    def data(self) -> list[DataSet]:
        """Inputs and expected outputs."""
        if self.family == "node":
            return [([_array(v) for v in i], [_array(v) for v in o]) for i, o in self.source.data_sets]
        return [_dummy(self.source)] if self.family == "light" else list(_stored(self.source, self.model()))


@cache
def collect() -> tuple[Case, ...]:
    """All cases, by family and name."""
    from onnx.backend.test.loader import load_model_tests

    found = []
    for family in FAMILIES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sources = load_model_tests(kind="real" if family == "light" else family)
        models = {s.name: s.model for s in sources}
        for source in sorted(sources, key=lambda s: s.name):
            if family == "node":
                if not source.data_sets or not _released(source.model):
                    continue
                plain = source.name.split("_expanded")[0]
                operator = models.get(plain, source.model).graph.node[0].op_type
                found.append(Case(source.name, family, operator, plain in models and plain != source.name, source))
            else:
                found.append(Case(source.name, family, source.name.removeprefix("test_"), False, source))
    return tuple(found)


def _released(model: onnx.ModelProto) -> bool:
    return all(o.version <= NEWEST_OPSET for o in model.opset_import if o.domain in ("", "ai.onnx"))


def _file(source: Any) -> Path:
    if source.model_dir is not None:
        return Path(source.model_dir) / "model.onnx"
    return Path(onnx.__file__).parent.parent / source.url


def _array(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _dummy(source: Any) -> DataSet:
    """Inputs that onnx's runner makes up, and the outputs stored beside the model."""
    from onnx.backend.test.runner import Runner

    file = _file(source)
    model = onnx.load(file)
    stored = {tensor.name for tensor in model.graph.initializer}
    inputs = [Runner.generate_dummy_data(info) for info in model.graph.input if info.name not in stored]
    outputs = [
        numpy_helper.to_array(onnx.load_tensor(file.with_name(f"{file.stem}_output_{number}.pb")))
        for number in range(len(model.graph.output))
    ]
    return inputs, outputs


def _stored(source: Any, model: onnx.ModelProto) -> Iterator[DataSet]:
    for folder in sorted(Path(source.model_dir).glob("test_data_set*")):
        inputs = [_value(folder / f"input_{n}.pb", model.graph.input[n]) for n in range(_count(folder, "input"))]
        outputs = [_value(folder / f"output_{n}.pb", model.graph.output[n]) for n in range(_count(folder, "output"))]
        yield inputs, outputs


def _count(folder: Path, role: str) -> int:
    return len(list(folder.glob(f"{role}_*.pb")))


def _value(file: Path, info: Any) -> Any:
    """The tensor, sequence or optional in a file."""
    kinds = {
        "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
        "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
        "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
    }
    kind, read = kinds[info.type.WhichOneof("value")]
    proto = kind()
    proto.ParseFromString(file.read_bytes())
    return read(proto)
