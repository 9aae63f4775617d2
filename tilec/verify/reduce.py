"""Reduction of a failing compiled model to the smallest part and inputs that still fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from tilec.errors import TilecError
from tilec.ir.plan import Plan
from tilec.spec.recipe import VerifyOptions
from tilec.verify.cases import cases_of, steps_at
from tilec.verify.failure_trial import MISMATCH, Bench, Build, Failure, Judge, Trace
from tilec.verify.groups import origins
from tilec.verify.input_files import unfeedable
from tilec.verify.inputs import Array
from tilec.verify.locate import locate
from tilec.verify.shrink import shrink, simplify
from tilec.verify.submodels import Choice, Part, Whole

MOST_TRIALS = 200
"""Limit of compiled parts; the smallest failing one until then is the result."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Reduced:
    """The remaining part of a model of `nodes` nodes, its failure, the number of compiled parts, and whether the search
    was completed."""

    part: Part
    failure: Failure
    nodes: int
    trials: int
    finished: bool


@dataclass(frozen=True)
class Case:
    """A compiled model: its folder, plan, ONNX file, the compiler of its parts, the data of its 3-kernels.json, and a
    folder to work in."""

    folder: Path
    plan: Plan
    model: Path
    build: Build
    kernels: Mapping[str, Any]
    scratch: Path


def reduce(case: Case, options: VerifyOptions, say: Say) -> Reduced:
    """The smallest part of the model that fails in the same way, as verify judges: with wrong outputs, a wrong group, a
    crash or an error.

    The search begins with the nodes behind the first diverging group. Computed tensors become inputs, with their values
    on onnxruntime; then sizes are halved and contents simplified. `say` receives progress. Raises TilecError when
    nothing fails, or no longer fails when the model is compiled again.
    """
    with Bench(case.scratch, case.build, options.tolerance) as bench:
        case, feeds, failure = _failing(case, options, bench)
        say(f"{failure.kind}: {failure.text}")
        proto = onnx.load(str(case.model), load_external_data=False)
        trace = Trace(case.model, proto, feeds, case.scratch / "trace")
        try:
            whole = Whole(proto, trace, case.model.parent)
            search = _Search(bench, failure, say)
            start = _start(case, whole, search, feeds)
            part = whole.part(shrink(whole, start, search.fails))
            assert part is not None
            part = simplify(part, search.fails)
        finally:
            trace.close()
        return Reduced(part, search.last, len(whole.nodes), bench.trials, bench.trials < MOST_TRIALS)


def _failing(case: Case, options: VerifyOptions, bench: Bench) -> tuple[Case, Mapping[str, Array], Failure]:
    """The first inputs for which the compiled model fails, with the failure and the plan at their sizes."""
    undrawn = unfeedable(case.plan, options.inputs)
    if undrawn is not None:
        raise TilecError(undrawn, str(case.folder), "Name inputs with --inputs FILE.npz.")
    for each in cases_of(case.plan, options, case.model):
        feeds, there = each.feeds, replace(case, plan=each.plan, kernels=steps_at(case.kernels, each))
        expected = bench.call(Judge, "onnxruntime", case.model, feeds)
        failure = bench.judged(case.model, there.plan, there.kernels, case.folder, feeds, expected)
        if failure is not None:
            return there, feeds, failure
    raise TilecError(
        "every output and every group is right, so there is nothing to reduce",
        str(case.folder),
        "Name other inputs with --inputs FILE.npz, or other `verify.seeds` in the recipe.",
    )


@dataclass
class _Search:
    """Tries parts up to the limit of trials; `last` is the failure of the last failing part."""

    bench: Bench
    last: Failure
    say: Say

    def fails(self, part: Part) -> bool:
        """Whether a part fails as the model does."""
        if self.bench.trials >= MOST_TRIALS:
            return False
        failure = self.bench.failure(part)
        if failure is None or failure.kind != self.last.kind:
            return False
        self.last = failure
        left = len(part.proto.graph.node)
        self.say(f"{left} {'node fails' if left == 1 else 'nodes fail'}: {failure.text.splitlines()[0]}")
        return True

    def chosen(self, whole: Whole, choice: Choice) -> bool:
        """Whether the part of a choice fails as the model does."""
        part = whole.part(choice) if choice.nodes else None
        return part is not None and self.fails(part)


def _start(case: Case, whole: Whole, search: _Search, feeds: Mapping[str, Array]) -> Choice:
    """A failing choice: the nodes behind the first diverging group, more around them, half of all, or all.

    Raises TilecError when not even the whole model fails.
    """
    choice = Choice(())
    divergence = search.last.divergence
    if divergence is None and search.last.kind == MISMATCH:
        divergence = locate(case.plan, case.folder, case.kernels, case.model, feeds)
    if divergence is not None:
        search.say(divergence.sentence())
        groups = {group.name: origins(group) for group in case.plan.groups}
        choice = whole.named(groups.get(divergence.group, ()))
    while 0 < len(choice.nodes) < len(whole.nodes):
        if search.chosen(whole, choice):
            return choice
        wider = whole.wider(choice)
        choice = wider if len(wider.nodes) > len(choice.nodes) else whole.all
    middle = len(whole.nodes) // 2
    for dropped in (range(middle, len(whole.nodes)), range(middle), ()):  # halves take half the time
        choice = whole.without(whole.all, dropped)
        if search.chosen(whole, choice):
            return choice
    raise TilecError(
        "the model is right when it is compiled anew",
        str(case.folder),
        "Its plan was edited, or another recipe or tilec made it: name its recipe with --recipe, or compile it again.",
    )
