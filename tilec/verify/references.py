"""The reference of a verification: onnxruntime, or where it has no answer the next best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilec.errors import TilecError, UnavailableError
from tilec.ir.call_segments import outside_calls
from tilec.ir.plan import Plan
from tilec.progress import Advance, unseen
from tilec.verify.cases import Case
from tilec.verify.compare import compare
from tilec.verify.inputs import Draw
from tilec.verify.look_budget import BUDGET, numpy_operations
from tilec.verify.remote import Remote, RemoteError
from tilec.verify.runners import OnnxReference, Reference
from tilec.verify.state_updates import state_names, with_rooms
from tilec.verify.tolerance import tolerances
from tilec.verify.whole_plan import WholePlan

ONNXRUNTIME = "onnxruntime"
ONNX = "onnx"
GRAPH = "graph"
NONE = "none"

DEATHS = 2
"""Times that the process of onnxruntime may end before it is asked no more."""

PATIENCE = 120.0
"""Seconds that ONNX's reference evaluator may take for one draw."""


@dataclass(frozen=True)
class Expected:
    """What a reference says of each of the `cases`: outputs by name, None where nothing has any.

    `references` are those that computed them: `onnxruntime`, `onnx` (ONNX's reference evaluator), `graph` (the plan's
    expressions in NumPy), `none` where there are no outputs. `refusals` are the reasons why it is not onnxruntime,
    empty where it is; outputs in `random` differ from run to run.
    """

    cases: Sequence[Case]
    outputs: Sequence[Mapping[str, Any] | None]
    references: Sequence[str]
    refusals: Sequence[str]
    random: tuple[str, ...] = ()

    @property
    def reference(self) -> str:
        """The best that any of the cases has; `none` where no case has one."""
        return next(each for each in (ONNXRUNTIME, ONNX, GRAPH, NONE) if each in (*self.references, NONE))

    @property
    def because(self) -> str:
        """The reason why that is not onnxruntime; empty where it is."""
        if self.reference == ONNXRUNTIME:
            return ""
        return self.refusals[list(self.references).index(self.reference)]

    def by(self, case: Case) -> str:
        """The reference of a case."""
        return next(by for each, by in zip(self.cases, self.references, strict=True) if each is case)

    def of(self, cases: Sequence[Case]) -> list[Mapping[str, Any]]:
        """The outputs of some of the cases, which have any."""
        outputs = {id(case): each for case, each in zip(self.cases, self.outputs, strict=True) if each is not None}
        return [outputs[id(case)] for case in cases]

    def report(self) -> dict[str, Any]:
        """The entries of the report: the reference, and of cases that have another one which, and why."""
        report: dict[str, Any] = {"reference": self.reference}
        if self.because:
            report["reference_because"] = self.because
        others = [
            {"because": why, "reference": name, **({"sizes": dict(case.sizes)} if case.sizes else {})}
            for case, name, why in zip(self.cases, self.references, self.refusals, strict=True)
            if name != self.reference
        ]
        return {**report, "refused": others} if others else report


def phrase(reference: str) -> str:
    """A reference in a sentence."""
    names = {ONNX: "ONNX's reference evaluator", GRAPH: "the plan's expressions in NumPy"}
    return names.get(reference, reference)


def expected_outputs(folder: Path, model: Path, cases: Sequence[Case], advance: Advance = unseen) -> Expected:
    """The reference's outputs for each of the cases of a plan.

    A model that onnxruntime cannot load, or that ends its process, is evaluated by ONNX's reference evaluator. Where
    that fails too or disagrees with the plan's expressions (it has defects of its own), or when onnxruntime refuses the
    inputs of a case, the expressions are the reference: kernels are verified then, but not how the model was imported.
    A model of which parts run on onnxruntime has none then, so that refused inputs are drawn once more with integers of
    0, which may be indices there. The expressions are also the reference of a plan whose weights, states or activations
    were rounded: the model has others. Raises UnavailableError without onnxruntime.
    """
    if because := _rounded(cases[0].plan):
        graph = [WholePlan(each.plan, folder).outputs(each.feeds) for each in cases]
        return Expected(cases, graph, [GRAPH] * len(cases), [because] * len(cases))
    told = _on_onnxruntime(model, cases, advance)
    outputs: list[Mapping[str, Any] | None] = []
    references, refusals = [], []
    evaluator = _Evaluator(folder, model)
    for case, answer in zip(told.cases, told.answers, strict=True):
        if not isinstance(answer, TilecError):
            outputs.append(with_rooms(case.plan, case.feeds, answer))
            references.append(ONNXRUNTIME)
            refusals.append("")
            continue
        refusals.append(answer.message)
        if told.loaded and _has_parts(case.plan):  # they would fail, too
            found, by = None, NONE
        else:
            found, by = evaluator.outputs(case, asked=not told.loaded or isinstance(answer, RemoteError))
        outputs.append(found)
        references.append(by)
    return Expected(told.cases, outputs, references, refusals, told.random)


Answer = Mapping[str, Any] | TilecError
"""Outputs by name, or why there are none."""


@dataclass(frozen=True)
class _Told:
    """What onnxruntime says of the cases, some of them with other inputs, and whether it loads the model."""

    cases: Sequence[Case]
    answers: Sequence[Answer]
    loaded: bool
    random: tuple[str, ...] = ()


def _on_onnxruntime(model: Path, cases: Sequence[Case], advance: Advance) -> _Told:
    """The answers of onnxruntime, in a process that is begun anew when it dies. Raises UnavailableError."""
    asked, answers = list(cases), list[Answer]()
    random: tuple[str, ...] = ()
    loaded, deaths = False, 0
    while len(answers) < len(asked):
        try:
            with Remote("onnxruntime", Reference, model, None, None, state_names(cases[0].plan)) as reference:
                reference.ready()
                loaded = True
                while len(answers) < len(asked):
                    case, answer = _asked(reference, asked[len(answers)])
                    asked[len(answers)] = case
                    answers.append(answer)
                    advance(len(answers), len(asked), "reference")
                answered = next((c for c, a in zip(asked, answers, strict=True) if not isinstance(a, TilecError)), None)
                if answered is not None and outside_calls(answered.plan.calls):
                    random = reference.call("unrepeatable", answered.model_feeds)
        except UnavailableError:
            raise
        except TilecError as error:  # it cannot load the model, or its process has ended
            deaths += 1
            left = len(asked) - len(answers)
            answers += [error] * (left if not loaded or deaths == DEATHS else min(left, 1))
    return _Told(asked, answers, loaded, random)


def _asked(reference: Remote, case: Case) -> tuple[Case, Answer]:
    """The answer for a case, and the case with the inputs that it is for."""
    answer: Answer = reference.call("attempted", case.model_feeds)
    if not isinstance(answer, TilecError) or not isinstance(case.feeding, Draw) or not _has_parts(case.plan):
        return case, answer
    cautious = replace(case, feeding=replace(case.feeding, cautious=True))
    again: Answer = reference.call("attempted", cautious.model_feeds)
    return (case, answer) if isinstance(again, TilecError) else (cautious, again)


def _has_parts(plan: Plan) -> bool:
    """Whether parts of the model run on onnxruntime."""
    return any(not call.loop and not call.updates for call in plan.calls)


class _Evaluator:
    """ONNX's reference evaluator and the plan's expressions, for cases that onnxruntime says nothing of: the first, and
    others within the budget of second looks."""

    def __init__(self, folder: Path, model: Path) -> None:
        self._folder, self._model = folder, model
        self._trusted = True
        self._left: int | None = None

    def outputs(self, case: Case, *, asked: bool) -> tuple[Mapping[str, Any] | None, str]:
        """The outputs of a case and the reference that has them: ONNX's if it is `asked`, and agrees with the
        expressions in this case and those before."""
        cost = numpy_operations(case.plan)
        if self._left is not None and cost > self._left:
            return None, NONE
        self._left = (BUDGET if self._left is None else self._left) - cost
        graph = WholePlan(case.plan, self._folder).outputs(case.feeds)
        if not asked or not self._trusted:
            return graph, GRAPH
        try:
            with Remote("ONNX's reference evaluator", OnnxReference, self._model) as reference:
                reference.ready()
                found: Mapping[str, Any] = reference.call("run", case.model_feeds, timeout=PATIENCE)
            outputs = with_rooms(case.plan, case.feeds, found)
            self._trusted = _agree(case, outputs, graph)
        except TilecError:
            self._trusted = False
        return (outputs, ONNX) if self._trusted else (graph, GRAPH)


def _rounded(plan: Plan) -> str:
    """What a plan rounds and its model does not; empty for nothing."""
    products = sum(bool(each.unit) for each in plan.roundings.values())
    weights = f"{len(plan.retyped)} weights are rounded to formats that the model does not have" if plan.retyped else ""
    states = "caches are rounded to a format that the model does not have" if plan.rounded else ""
    return (
        weights
        or states
        or (f"the activations of {products} products are rounded, which the model need not do" if products else "")
    )


def _agree(case: Case, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two references say the same of a case to half of what rounding allows: a kernel has the other half."""
    allowed = tolerances(case.plan)
    return all(compare(name, one[name], other[name], tolerance / 2).passed for name, tolerance in allowed.items())
