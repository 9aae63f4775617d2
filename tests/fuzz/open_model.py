"""A model with open sizes and what it is tried with: one compilation, several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import helper

from fuzz.reference import Array, NoReference, evaluate
from fuzz.sketch import Judged
from fuzz.worker import Worker


@dataclass(frozen=True)
class OpenModel:
    """A model, inputs at each of some sizes, the first of which it was drawn at, and the names of the sizes there."""

    proto: onnx.ModelProto
    tries: Sequence[dict[str, Array]]
    sizes: Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class OpenFinding:
    """A failure: its kind, where, and the details."""

    kind: str
    detail: str


def opened(proto: onnx.ModelProto, tries: Sequence[Mapping[str, Array]], sizes: Mapping[str, Sequence[int]]) -> None:
    """Declare the shapes of a model's inputs: what is the same in all tries is a number, the rest are sizes."""
    names = {tuple(values): name for name, values in sizes.items()}
    for info in proto.graph.input:
        shapes = [feeds[info.name].shape for feeds in tries]
        dims = [
            extents[0] if len(set(extents)) == 1 else names.setdefault(extents, f"d{len(names)}")
            for extents in zip(*shapes, strict=True)
        ]
        kind = helper.np_dtype_to_tensor_dtype(tries[0][info.name].dtype)
        info.CopyFrom(helper.make_tensor_value_info(info.name, kind, dims))


def check_open(model: OpenModel, worker: Worker) -> tuple[OpenFinding | None, int]:
    """Compile once, run at every size, compare with the judge. Returns what is wrong, and how many sizes were refused
    that the judge takes. Raises NoReference."""
    traces: list[Judged | None] = []
    for feeds in model.tries:
        try:
            traces.append(evaluate(model.proto, feeds))
        except NoReference:
            traces.append(None)
    if traces[0] is None:
        raise NoReference("at the sizes it was drawn at")
    kept = [number for number, trace in enumerate(traces) if trace is not None]
    outcome = worker.run_all(model.proto.SerializeToString(), [model.tries[number] for number in kept])
    if outcome.failure:
        return OpenFinding(outcome.failure, outcome.detail), 0
    refused = 0
    for number, found in zip(kept, outcome.each, strict=True):
        there = ", ".join(f"{name}={values[number]}" for name, values in model.sizes.items())
        if isinstance(found, str):
            refused += 1
            if number == 0:
                return OpenFinding("refused", f"at {there}: {found}"), refused
            continue
        trace = traces[number]
        assert trace is not None
        problems = [trace.difference(port.name, found[port.name]) for port in model.proto.graph.output]
        problems = [problem for problem in problems if problem]
        if problems:
            return OpenFinding("wrong", f"at {there}\n" + "\n".join(problems)), refused
    return None, refused
