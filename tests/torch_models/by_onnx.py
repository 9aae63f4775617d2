"""`python -m tests.torch_models.by_onnx NAME TYPE fixed|open STAGE`: one model, as JSON on the last line of the output.

`torch.onnx.export(dynamo=True)` writes it, at the sizes of its first call or with those open in which its calls differ;
`tilec compile` takes it to a stage, at `codegen` its results are compared with those of eager PyTorch.
"""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export.graph_signature import InputKind, TensorArgument
from torch.utils import _pytree

from tests.cpu_limit import run_limited
from tests.torch_models.case import Call
from tests.torch_models.judge import faults, worst
from tests.torch_models.models import CASES
from tests.torch_models.one import limit_memory, prepared, reference

LIMIT = 240.0
"""CPU seconds of a compilation."""


def main(name: str, kind: str, sizes: str, stage: str) -> None:
    """Print what became of a model. What PyTorch does not export is told apart from what is wrong."""
    limit_memory()
    model, calls = prepared(CASES[name], kind)
    calls = calls if sizes == "open" else calls[:1]
    with tempfile.TemporaryDirectory(prefix="tilec-models-") as folder:
        path = Path(folder) / "model.onnx"
        try:
            program = _exported(model, calls, kind)
            program.save(str(path), external_data=False)
        except Exception as error:
            said: dict[str, Any] = {"faults": [], "not_exported": f"{type(error).__name__}: {error}"[:2000]}
        else:
            said = _compiled(path, Path(folder) / "build", stage)
            if not said["faults"] and stage == "codegen":
                said |= _judged(model, calls, kind, program.exported_program, Path(folder) / "build")
    print(json.dumps(said))


def _exported(model: nn.Module, calls: list[Call], kind: str) -> Any:
    arguments, named = copy.deepcopy(calls[0])
    shapes = None
    if len(calls) > 1:
        several = torch.export.AdditionalInputs()
        for call in calls[1:]:
            several.add(*copy.deepcopy(call))
        shapes = several.dynamic_shapes(model, arguments, named)
    logging.disable(logging.WARNING)
    with warnings.catch_warnings(), torch.no_grad(), _autocast(kind), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        return torch.onnx.export(model, arguments, kwargs=named, dynamic_shapes=shapes, dynamo=True, verbose=False)


def _compiled(model: Path, build: Path, stage: str) -> dict[str, Any]:
    """What `tilec compile` says: faults, nodes, those that are native, why the others are not."""
    command = [sys.executable, "-m", "tilec", "compile", str(model), "-o", str(build), "--to", stage]
    done = run_limited(command, LIMIT)
    lines = [line for line in done.errors.splitlines() if line.startswith("error:")] or done.errors.splitlines()[-1:]
    fault = done.ended or (f"exit {done.code}: {' '.join(lines)[:300]}" if done.code else "")
    said: dict[str, Any] = {"faults": [fault] if fault else [], "seconds": done.seconds}
    graph = build / "1-graph.json"
    if graph.is_file():
        placement = json.loads(graph.read_text(encoding="utf-8"))["placement"]
        reasons = Counter(f"{each['op']}: {each['reason']}" for each in placement.get("fallback", ()))
        said |= {"nodes": placement["total"], "native": placement["compiled"], "reasons": dict(reasons.most_common(5))}
    return said


def _judged(model: nn.Module, calls: list[Call], kind: str, program: Any, build: Path) -> dict[str, Any]:
    import tilec

    session = tilec.load(build)
    wanted = {each.name for each in session.inputs}
    said: list[str] = []
    largest = 0.0
    for number, call in enumerate(calls):
        (eager, _), (exact, _), _ = reference(model, call, kind)
        given = _feeds(program, call)
        made = session.run({name: value for name, value in given.items() if name in wanted})
        ours = [torch.from_numpy(each) for each in made.values()]
        said += [f"call {number}, {each}" for each in faults(ours, eager, exact, kind)]
        largest = max(largest, worst(ours, exact))
    return {"faults": said, "error": largest}


def _feeds(program: Any, call: Call) -> Mapping[str, Any]:
    """The tensors of a call by their names in the exported program."""
    arguments, named = copy.deepcopy(call)
    order = program.call_spec.in_spec.child(1).context
    leaves = _pytree.tree_leaves((arguments, {name: named[name] for name in order}))
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    pairs = [(spec.arg, leaf) for spec, leaf in zip(specs, leaves, strict=True)]
    return {arg.name: leaf.detach().numpy() for arg, leaf in pairs if isinstance(arg, TensorArgument)}


def _autocast(kind: str) -> contextlib.AbstractContextManager[Any]:
    return torch.autocast("cpu", torch.bfloat16) if kind == "bf16" else contextlib.nullcontext()


if __name__ == "__main__":
    main(*sys.argv[1:])
