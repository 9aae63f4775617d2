"""The reference of a verification: onnxruntime, or where it has no answer the next best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilec.errors import TilecError, UnavailableError
from tilec.ir.plan import Plan
from tilec.verify.compare import compare
from tilec.verify.input_files import Feeding, feeds_of
from tilec.verify.remote import Remote, RemoteError
from tilec.verify.runners import OnnxReference, Reference
from tilec.verify.tolerance import tolerances
from tilec.verify.whole_plan import WholePlan

ONNXRUNTIME = "onnxruntime"
ONNX = "onnx"
GRAPH = "graph"
NONE = "none"

PATIENCE = 120.0
"""Seconds that ONNX's reference evaluator may take for one draw."""


@dataclass(frozen=True)
class Expected:
    """The outputs of each draw by name, and the reference that computed them: `onnxruntime`, `onnx` (ONNX's reference
    evaluator), `graph` (the plan's expressions in NumPy) or `none`, without outputs.

    `because` is the reason why it is not onnxruntime; outputs in `random` differ from run to run.
    """

    reference: str
    outputs: Sequence[Mapping[str, Any]]
    because: str = ""
    random: tuple[str, ...] = ()

    @property
    def phrase(self) -> str:
        """The reference in a sentence."""
        names = {ONNX: "ONNX's reference evaluator", GRAPH: "the plan's expressions in NumPy"}
        return names.get(self.reference, self.reference)


def expected_outputs(plan: Plan, folder: Path, model: Path, chosen: Sequence[Feeding]) -> Expected:
    """The reference's outputs for each set of inputs.

    A model that onnxruntime cannot load is evaluated by ONNX's reference evaluator. Where that fails too or disagrees
    with the plan's expressions (it has defects of its own), or when onnxruntime fails on these inputs, the expressions
    are the reference: kernels are verified then, but not how the model was imported. A model of which parts run on
    onnxruntime has none then. Raises UnavailableError without onnxruntime, RemoteError when its process dies.
    """
    loaded = False
    try:
        with Remote("onnxruntime", Reference, model) as reference:
            reference.ready()
            loaded = True
            outputs = [reference.call("run", feeds_of(plan, each)) for each in chosen]
            random = reference.call("unrepeatable", feeds_of(plan, chosen[0])) if plan.calls else ()
        return Expected(ONNXRUNTIME, outputs, random=random)
    except (UnavailableError, RemoteError):
        raise
    except TilecError as error:
        if plan.calls and loaded:  # its parts on onnxruntime would fail, too
            return Expected(NONE, (), error.message)
        because = error.message
    whole = WholePlan(plan, folder)
    graph = [whole.outputs(feeds_of(plan, each)) for each in chosen]
    if not loaded:
        try:
            with Remote("ONNX's reference evaluator", OnnxReference, model) as reference:
                reference.ready()
                outputs = [reference.call("run", feeds_of(plan, each), timeout=PATIENCE) for each in chosen]
        except TilecError:
            return Expected(GRAPH, graph, because)
        allowed = tolerances(plan)
        pairs = zip(outputs, graph, strict=True)
        if all(compare(name, one[name], other[name], allowed[name]).passed for one, other in pairs for name in allowed):
            return Expected(ONNX, outputs, because)
    return Expected(GRAPH, graph, because)
