"""The reference of a verification: onnxruntime, or where it has no answer the next best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilec.errors import TilecError, UnavailableError
from tilec.ir.plan import Plan
from tilec.verify.cases import Case
from tilec.verify.compare import compare
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


def expected_outputs(folder: Path, model: Path, cases: Sequence[Case]) -> Expected:
    """The reference's outputs for each of the cases of a plan.

    A model that onnxruntime cannot load is evaluated by ONNX's reference evaluator. Where that fails too or disagrees
    with the plan's expressions (it has defects of its own), or when onnxruntime fails on these inputs, the expressions
    are the reference: kernels are verified then, but not how the model was imported. A model of which parts run on
    onnxruntime has none then. The expressions are also the reference of a plan whose weights or activations were
    rounded: the model has others. Raises UnavailableError without onnxruntime, RemoteError when its process dies.
    """
    loaded = False
    calls = cases[0].plan.calls
    if because := _rounded(cases[0].plan):
        return Expected(GRAPH, [WholePlan(each.plan, folder).outputs(each.feeds) for each in cases], because)
    try:
        with Remote("onnxruntime", Reference, model) as reference:
            reference.ready()
            loaded = True
            outputs = [reference.call("run", each.feeds) for each in cases]
            random = reference.call("unrepeatable", cases[0].feeds) if calls else ()
        return Expected(ONNXRUNTIME, outputs, random=random)
    except (UnavailableError, RemoteError):
        raise
    except TilecError as error:
        if calls and loaded:  # its parts on onnxruntime would fail, too
            return Expected(NONE, (), error.message)
        because = error.message
    graph = [WholePlan(each.plan, folder).outputs(each.feeds) for each in cases]
    if not loaded:
        try:
            with Remote("ONNX's reference evaluator", OnnxReference, model) as reference:
                reference.ready()
                outputs = [reference.call("run", each.feeds, timeout=PATIENCE) for each in cases]
        except TilecError:
            return Expected(GRAPH, graph, because)
        if all(_agree(*each) for each in zip(cases, outputs, graph, strict=True)):
            return Expected(ONNX, outputs, because)
    return Expected(GRAPH, graph, because)


def _rounded(plan: Plan) -> str:
    """What a plan rounds and its model does not; empty for nothing."""
    products = sum(bool(each.unit) for each in plan.roundings.values())
    weights = f"{len(plan.retyped)} weights are rounded to formats that the model does not have" if plan.retyped else ""
    return weights or (
        f"the activations of {products} products are rounded, which the model need not do" if products else ""
    )


def _agree(case: Case, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two references say the same of a case, as far as rounding allows."""
    allowed = tolerances(case.plan)
    return all(compare(name, one[name], other[name], tolerance).passed for name, tolerance in allowed.items())
