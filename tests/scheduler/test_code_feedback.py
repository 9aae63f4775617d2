"""Groups without code are cut where the back end refuses them, with its reason; what cannot be cut stays."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scheduler.graphs import values_of
from scheduler.models import attention
from scheduler.running import device, illegal, run_plan

from tilec.analysis.explain.replay import replay
from tilec.errors import UnsupportedError
from tilec.ir.plan import Group, Plan, Variant
from tilec.ir.program import Program
from tilec.pipeline.pass_printer import PassPrinter
from tilec.scheduler.schedule import schedule
from tilec.scheduler.trace import RecordedTrace
from tilec.spec.recipe import ScheduleOptions

pytestmark = pytest.mark.feature("A15")


class AtMost:
    """A back end without code for kernels of more reductions; it decides nothing."""

    def __init__(self, reductions: int) -> None:
        self.reductions = reductions
        self.refused: list[tuple[str, ...]] = []

    def __call__(self, plan: Plan, groups: Sequence[Group], program: Program) -> tuple[Variant, None]:
        assert plan.groups
        count = sum(bool(node.expr.reduce) for node in groups[0].nodes)
        if count > self.reductions:
            self.refused.append(tuple(node.name for node in groups[0].nodes))
            raise UnsupportedError(f"{count} reductions in one kernel")
        return next(each for each in groups[0].variants if each.kernel == program.name), None


OPTIONS = ScheduleOptions(bounds=False)


@cache
def free() -> tuple[Plan, int]:
    """The plan where nothing is refused, and the most reductions of one of its kernels."""
    plan = schedule(attention(), device("avx2"), OPTIONS)
    return plan, max(sum(bool(node.expr.reduce) for node in group.nodes) for group in plan.groups)


@cache
def cut(reductions: int) -> tuple[Plan, AtMost, RecordedTrace]:
    """The plan for a back end without code for kernels of more reductions, what it refused, how it came about."""
    decide, trace = AtMost(reductions), RecordedTrace()
    return schedule(attention(), device("avx2"), OPTIONS, trace, decide=decide), decide, trace


def test_a_refused_group_is_cut_with_the_reason() -> None:
    graph, (whole, most) = attention(), free()
    assert most >= 2
    told: list[str] = []
    plan, decide, trace = cut(most - 1)
    assert illegal(plan) == []
    assert all(sum(bool(node.expr.reduce) for node in group.nodes) < most for group in plan.groups)
    assert len(plan.groups) > len(whole.groups)
    assert len(set(decide.refused)) == len(decide.refused)
    reasons = {each.numbers["why"] for each in plan.refusals if each.code == "code"}
    assert reasons == {f"{most} reductions in one kernel"}
    found = run_plan(plan, dict(values_of(replace(graph, outputs=graph.inputs))))
    for name, value in values_of(graph).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5)
    printer = PassPrinter(told.append)
    for entry in trace.entries:
        printer.record(entry.step, entry.before, entry.after)
    assert any("refused edges: " in text and "code " in text for text in told)


def test_explanations_follow_the_cut() -> None:
    most = free()[1] - 1
    plan, *_ = cut(most)
    assert replay(attention(), device("avx2"), OPTIONS, AtMost(most)).plan == plan


def test_what_cannot_be_cut_stays_as_it_is() -> None:
    plan, *_ = cut(0)
    assert illegal(plan) == []
    assert max(sum(bool(node.expr.reduce) for node in group.nodes) for group in plan.groups) == 1
