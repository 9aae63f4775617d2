"""Independent groups that leave cores idle share a launch: predicted, refused with numbers, planned in memory, run."""

import itertools
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scheduler.graphs import make_graph, values_of
from scheduler.running import device, illegal, run_plan

from tilec.analysis.explain.replay import replay
from tilec.analysis.explain.summary import summarised
from tilec.analysis.statistics import statistics
from tilec.analysis.totals import predicted
from tilec.artifact import Artifact
from tilec.codegen.driver import codegen
from tilec.codegen.kernels import lower_plan
from tilec.ir.codec import plan_from_json, plan_to_json
from tilec.ir.expr import operands
from tilec.ir.graph import Graph
from tilec.ir.plan import Plan, SharedLaunch
from tilec.ir.verify.plan import check_plan
from tilec.pipeline.code_decisions import decide_for
from tilec.pipeline.pass_printer import PassPrinter
from tilec.progress import unseen
from tilec.report.explain.summary_text import summary_text
from tilec.runtime import load
from tilec.scheduler.predicted_times.task_terms import TaskTerms
from tilec.scheduler.schedule import recounted_plan, schedule
from tilec.scheduler.shared_launches import ShareLaunches, launch_picoseconds
from tilec.scheduler.target_model import target_model_of
from tilec.spec.recipe import CodegenOptions, ScheduleOptions

pytestmark = pytest.mark.feature("A03", "A12")

AVX2 = device("avx2")
OPTIONS = ScheduleOptions(bounds=False)


def towers(count: int = 3) -> Graph:
    """Chains of reductions of one long row, which do not read each other: partial results leave few tasks."""
    e = {"m": 1, "n": 20000}
    nodes = []
    for i in range(count):
        nodes += [
            (f"t{i}[m] = max(n, x{i}[m, n])", e),
            (f"e{i}[m, n] = exp(x{i}[m, n] - t{i}[m])", e),
            (f"s{i}[m] = sum(n, e{i}[m, n])", e),
            (f"y{i}[m, n] = e{i}[m, n] / s{i}[m]", e),
        ]
    return make_graph({f"x{i}": (1, 20000) for i in range(count)}, nodes, [f"y{i}" for i in range(count)])


@pytest.fixture(scope="module")
def plan() -> Plan:
    return schedule(towers(), AVX2, OPTIONS, decide=decide_for(AVX2))


@pytest.mark.feature("A13")
def test_times_are_those_of_tasks_in_turn_on_free_cores() -> None:
    """Two cores; every figure in microseconds."""
    costs = replace(target_model_of(AVX2).costs, join=1e-6, imbalance=0.0)
    target = replace(target_model_of(AVX2), cores=2, costs=costs, links=(inf, 1e6), draw=inf)

    def time(*groups: tuple[int, float]) -> float:
        return launch_picoseconds([TaskTerms(tasks, 1e-6 * task, 0.0, 0.0) for tasks, task in groups], target) / 1e6

    assert time((1, 5.0), (1, 3.0)) == 6.0
    assert time((1, 5.0), (2, 3.0)) == 7.0
    assert time((3, 2.0), (1, 2.0)) == 5.0
    assert time((1, 4.0), (0, 9.0)) == 5.0
    drawing = [TaskTerms(1, 1e-6, 3e-6, 4.0), TaskTerms(1, 1e-6, 7e-6, 4.0)]
    assert launch_picoseconds(drawing, target) == 8_000_000
    assert launch_picoseconds(drawing, replace(target, links=(inf, 1e9))) == 7_000_000


def test_groups_that_share_stand_together_and_cost_less(plan: Plan) -> None:
    assert plan.launches
    names = [group.name for group in plan.groups]
    for launch in plan.launches:
        place = names.index(launch.groups[0])
        assert tuple(names[place : place + len(launch.groups)]) == launch.groups
        apart = sum(group.cost.picoseconds for group in plan.groups if group.name in launch.groups)
        assert 0 < launch.picoseconds < ShareLaunches.gain * apart
    assert check_plan(plan) == ()
    assert illegal(plan) == []
    assert predicted(plan) < sum(group.cost.picoseconds for group in plan.groups)
    assert statistics(plan).launches == len(names) - sum(len(launch.groups) - 1 for launch in plan.launches)
    assert plan_from_json(plan_to_json(plan)) == plan
    assert recounted_plan(plan, AVX2).launches == plan.launches
    assert "launches" not in plan_to_json(replace(plan, launches=()))


def test_what_shares_and_what_does_not_is_printed_with_its_times() -> None:
    told: list[str] = []
    schedule(towers(), AVX2, OPTIONS, PassPrinter(told.append))
    (text,) = [text for text in told if text.startswith("after share_launches")]
    assert " share a launch: " in text
    assert " do not: " in text


def test_where_launches_cost_something_nothing_is_shared() -> None:
    dear = AVX2.model_copy(update={"launch_overhead": 5_000_000})
    assert schedule(towers(2), dear, OPTIONS).launches == ()


def test_a_launch_that_cannot_be_is_refused(plan: Plan) -> None:
    names = [group.name for group in plan.groups]
    first = plan.launches[0].groups

    def problems(*groups: tuple[str, ...]) -> str:
        return " ".join(check_plan(replace(plan, launches=tuple(SharedLaunch(each) for each in groups))))

    assert "stand behind each other: nobody" in problems(("nobody", "else"))
    assert "stand behind each other" in problems((names[0], names[-1]))
    assert "stand behind each other" in problems((names[0],))
    assert "is in two launches" in problems(first, first)
    reads = next(
        (a.name, b.name)
        for a, b in zip(plan.groups, plan.groups[1:], strict=False)
        if any(t in a.outputs for node in b.nodes for t in operands(node.expr))
    )
    assert "which its own launch computes" in problems(reads)


def test_tensors_of_a_launch_lie_apart_and_the_library_computes(plan: Plan, tmp_path) -> None:
    kernels = lower_plan(plan, tmp_path, unseen)
    steps = {step.group: step for step in kernels.steps}
    for launch in plan.launches:
        written = [name for group in plan.groups if group.name in launch.groups for name in group.outputs]
        touched = {t for name in launch.groups for t in steps[name].tensors if t in kernels.arena.offsets}
        spans = sorted((kernels.arena.offsets[t], kernels.arena.offsets[t] + 4) for t in touched)
        assert set(written) & touched
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    body = codegen(
        plan,
        AVX2,
        CodegenOptions(threads=4),
        folder=tmp_path,
        cache=None,
        advance=unseen,
    )
    widths = [segment["width"] for segment in body["runtime"]["segments"]]
    assert widths[0] >= max(len(launch.groups) for launch in plan.launches)
    Artifact("kernels", {}, body).write(tmp_path / "3-kernels.json")
    graph = towers()
    feeds = dict(values_of(replace(graph, outputs=graph.inputs)))
    expected = run_plan(plan, feeds)
    for threads in (1, 3):
        found = load(tmp_path, threads=threads).run(feeds)
        for name, value in values_of(graph).items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(expected[name], value, rtol=1e-4, atol=1e-6)


def test_the_explanation_of_a_plan_lists_its_launches(plan: Plan) -> None:
    found = replay(towers(), AVX2, OPTIONS, decide_for(AVX2))
    summary = summarised(found, plan)
    assert summary.same
    assert summary.launches == plan.launches
    assert "groups that share a launch" in summary_text(summary, "plan")
