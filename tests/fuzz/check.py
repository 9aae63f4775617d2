"""One model through the compiler and the judge: what is wrong, and the smallest part of it that is wrong still."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import ModelProto, numpy_helper

from fuzz.reference import evaluate
from fuzz.sketch import Judge, Judged, Model
from fuzz.worker import Worker
from tilec.verify.shrink import shrink
from tilec.verify.submodels import Part, Whole


@dataclass(frozen=True)
class Finding:
    """A failure: its kind (`wrong` or the name of what happened) and the details."""

    kind: str
    detail: str


def check(model: Model, worker: Worker, trace: Judged | None = None) -> Finding | None:
    """Compile, run and compare with the judge. Raises NoReference."""
    trace = trace or model.evaluate(model.proto, model.feeds)
    outcome = worker.run(model.proto.SerializeToString(), model.feeds)
    if outcome.failure:
        return Finding(outcome.failure, outcome.detail)
    names = [port.name for port in model.proto.graph.output]
    if list(outcome.outputs) != names:
        return Finding("wrong", f"outputs {list(outcome.outputs)} instead of {names}")
    problems = [trace.difference(name, outcome.outputs[name]) for name in names]
    problems = [problem for problem in problems if problem]
    return Finding("wrong", "\n".join(problems)) if problems else None


def reduced(model: Model, finding: Finding, worker: Worker) -> tuple[Model, Finding]:
    """The smallest part of a model that fails in the same way; tensors that were computed become inputs."""
    trace = model.evaluate(model.proto, model.feeds)
    last = (model, finding)

    def fails(part: Part) -> bool:
        nonlocal last
        candidate = Model(part.proto, dict(part.feeds), model.evaluate)
        found = check(candidate, worker, trace)
        if found is None or found.kind != finding.kind:
            return False
        last = (candidate, found)
        return True

    whole = Whole(model.proto, lambda names: {name: trace[name] for name in names})
    shrink(whole, whole.all, fails)
    return last


def save(model: Model, folder: Path) -> None:
    """Write a model and its inputs in the layout of onnx's own tests."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.proto.SerializeToString())
    for number, (name, array) in enumerate(model.feeds.items()):
        (folder / f"input_{number}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())


def read(folder: Path, evaluate: Judge = evaluate) -> Model:
    """What `save` wrote."""
    proto = ModelProto.FromString((folder / "model.onnx").read_bytes())
    tensors = [onnx.TensorProto.FromString(path.read_bytes()) for path in sorted(folder.glob("input_*.pb"))]
    return Model(proto, {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}, evaluate)


def text_of(model: Model) -> str:
    """The nodes of a model for people, with the types of what is given."""
    graph = onnx.GraphProto()
    graph.CopyFrom(model.proto.graph)
    given = [*model.feeds.items(), *((t.name, numpy_helper.to_array(t)) for t in graph.initializer)]
    del graph.initializer[:], graph.input[:]
    types = ", ".join(f"{name}: {array.dtype}{list(array.shape)}" for name, array in given)
    return f"opset {model.proto.opset_import[0].version}, {types}\n{onnx.printer.to_text(graph)}"
