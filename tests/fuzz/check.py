"""One model through the compiler and the judge: what is wrong, and the smallest part of it that is wrong still."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import ModelProto, numpy_helper

from fuzz.reference import Trace, difference, evaluate
from fuzz.sketch import Model, model_of
from fuzz.worker import Worker


@dataclass(frozen=True)
class Finding:
    """A failure: its kind (`wrong` or the name of what happened) and the details."""

    kind: str
    detail: str


def check(model: Model, worker: Worker, trace: Trace | None = None) -> Finding | None:
    """Compile, run and compare with the judge. Raises NoReference."""
    trace = trace or evaluate(model.proto, model.feeds)
    outcome = worker.run(model.proto.SerializeToString(), model.feeds)
    if outcome.failure:
        return Finding(outcome.failure, outcome.detail)
    names = [port.name for port in model.proto.graph.output]
    if list(outcome.outputs) != names:
        return Finding("wrong", f"outputs {list(outcome.outputs)} instead of {names}")
    problems = [difference(trace, name, outcome.outputs[name]) for name in names]
    problems = [problem for problem in problems if problem]
    return Finding("wrong", "\n".join(problems)) if problems else None


def reduced(model: Model, finding: Finding, worker: Worker) -> tuple[Model, Finding]:
    """The smallest part of a model that fails in the same way; tensors that were computed become inputs."""
    trace = evaluate(model.proto, model.feeds)
    progress = True
    while progress:
        progress = False
        for candidate in _smaller(model, trace):
            found = check(candidate, worker, trace)
            if found is not None and found.kind == finding.kind:
                model, finding, progress = candidate, found, True
                break
    return model, finding


def _smaller(model: Model, trace: Trace) -> Iterator[Model]:
    """Smaller models, the smallest first: one output, less the nodes before a cut, inputs as weights."""
    graph = model.proto.graph
    outputs = [port.name for port in graph.output]
    if len(outputs) > 1:
        for name in outputs:
            yield _part(model, trace, [name], frozenset())
        yield from (_part(model, trace, [o for o in outputs if o != name], frozenset()) for name in outputs)
    for node in reversed(graph.node):
        if len(graph.node) > 1:
            kept = [o for o in outputs if o not in node.output]
            yield _part(model, trace, kept or list(graph.node[-2].output)[:1], frozenset(node.output))
    for node in graph.node:
        for name in node.input:
            if len(graph.node) > 1 and name in {o for n in graph.node for o in n.output} and name not in outputs:
                yield _part(model, trace, [name], frozenset())


def _part(model: Model, trace: Trace, outputs: list[str], cut: frozenset[str]) -> Model:
    """The nodes that `outputs` need, with the tensors in `cut` as inputs."""
    graph = model.proto.graph
    needed, kept = set(outputs), []
    for node in reversed(graph.node):
        made = set(node.output)
        if made & needed and not made & cut:
            kept.append(node)
            needed |= {name for name in node.input if name}
    made = {name for node in kept for name in node.output}
    weights = {t.name: numpy_helper.to_array(t) for t in graph.initializer if t.name in needed}
    feeds = {n: trace[n] for n in sorted(needed) if n and n not in made and n not in weights}
    opset = model.proto.opset_import[0].version
    return Model(model_of(kept[::-1], feeds, weights, outputs, opset), feeds)


def save(model: Model, folder: Path) -> None:
    """Write a model and its inputs in the layout of onnx's own tests."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.proto.SerializeToString())
    for number, (name, array) in enumerate(model.feeds.items()):
        (folder / f"input_{number}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())


def read(folder: Path) -> Model:
    """What `save` wrote."""
    proto = ModelProto.FromString((folder / "model.onnx").read_bytes())
    tensors = [onnx.TensorProto.FromString(path.read_bytes()) for path in sorted(folder.glob("input_*.pb"))]
    return Model(proto, {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors})


def text_of(model: Model) -> str:
    """The nodes of a model for people, with the types of what is given."""
    graph = onnx.GraphProto()
    graph.CopyFrom(model.proto.graph)
    given = [*model.feeds.items(), *((t.name, numpy_helper.to_array(t)) for t in graph.initializer)]
    del graph.initializer[:], graph.input[:]
    types = ", ".join(f"{name}: {array.dtype}{list(array.shape)}" for name, array in given)
    return f"opset {model.proto.opset_import[0].version}, {types}\n{onnx.printer.to_text(graph)}"
