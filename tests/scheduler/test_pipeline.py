"""The two lists of the scheduler: an entry is all that a pass or step needs to run, be named, printed and explained."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar
from unittest import mock

import pytest
from scheduler.fusion.test_tune_groups import Last, tuned
from scheduler.graphs import make_graph
from scheduler.memory_levels.test_hierarchical_search import small
from scheduler.memory_levels.test_level_groups import chain
from scheduler.models import attention
from scheduler.running import illegal, tiny

from tilec.analysis.explain.edge import explain_edge
from tilec.analysis.explain.replay import replay
from tilec.errors import ConfigError
from tilec.ir.graph import Graph
from tilec.ir.plan import Plan
from tilec.pipeline.pass_printer import PassPrinter
from tilec.report.explain.edge_text import edge_text
from tilec.scheduler import pipeline, schedule
from tilec.scheduler.pipeline import GRAPH_PASSES, SEARCH
from tilec.scheduler.refusals import edge_name, refusal
from tilec.scheduler.state import GroupSet, SearchState, SearchStep
from tilec.scheduler.trace import RecordedTrace, Trace
from tilec.spec.recipe import ScheduleOptions

REQUIRED = tuple(step.name for step in SEARCH if step.required)


def softmax() -> Graph:
    e = {"s": 8, "n": 6}
    nodes = [
        ("top[s] = max(n, x[s, n])", e),
        ("e[s, n] = exp(x[s, n] - top[s])", e),
        ("total[s] = sum(n, e[s, n])", e),
        ("y[s, n] = e[s, n] / total[s]", e),
    ]
    return make_graph({"x": (8, 6)}, nodes, ["y"])


@dataclass(frozen=True)
class SeparateSmallGroups(SearchStep):
    """A step that the package does not have."""

    name: ClassVar[str] = "separate_small_groups"
    template: ClassVar[str] = "a group of fewer than {least} parts falls apart"

    least: int = 9
    """Parts of a group that stays."""

    def run(self, state: SearchState, _trace: Trace) -> SearchState:
        sets, refused = [], dict(state.refused)
        for of in state.sets:
            groups = tuple(part for members in of.groups for part in self.pieces(members))
            for edge in (edge for edges in of.problem.edges for edge in edges):
                refused[edge_name(*edge)] = refusal(*edge, "length", parts=len(of.problem.parts), most=self.least)
            sets.append(GroupSet(of.problem, groups))
        return replace(state, sets=tuple(sets), refused=refused)

    def pieces(self, members: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        yield from [(number,) for number in members] if len(members) < self.least else [members]


@pytest.fixture
def _one_more_step() -> Iterator[None]:
    place = [step.name for step in SEARCH].index("join_reductions") + 1
    steps = (*SEARCH[:place], SeparateSmallGroups(), *SEARCH[place:])
    with mock.patch.object(pipeline, "SEARCH", steps):
        yield


def printed(graph: Graph, options: ScheduleOptions | None = None) -> tuple[Plan, list[str]]:
    told: list[str] = []
    plan = schedule(graph, tiny(), options, PassPrinter(told.append))
    return plan, told


@pytest.mark.usefixtures("_one_more_step")
def test_an_entry_from_outside_runs_and_is_named_printed_and_explained() -> None:
    graph, name = softmax(), SeparateSmallGroups.name
    without = ScheduleOptions(passes=tuple(step.name for step in SEARCH))
    joined, _ = printed(graph, without)
    plan, told = printed(graph)
    assert illegal(plan) == []
    assert len(plan.groups) > len(joined.groups) == 1
    (block,) = [text for text in told if text.startswith(f"after {name} (fusion full):")]
    rule = "  rule: a group of fewer than 9 parts falls apart"
    assert rule in next(text for text in told if text.startswith(f"after {name}"))
    assert "refused edges: length" in block
    found = replay(graph, tiny(), ScheduleOptions())
    assert found.plan == plan
    story = explain_edge(found, "top", "e")
    look = next(each for each in story.steps if each.step == name)
    assert look.rule == "a group of fewer than 9 parts falls apart"
    assert look.reason is not None
    assert look.reason.code == "length"
    assert story.decided_by == name
    assert "rule: a group of fewer than 9 parts falls apart" in edge_text(story)
    with pytest.raises(ConfigError, match=f"Did you mean '{name}'"):
        schedule(graph, tiny(), ScheduleOptions(passes=("separate_small_group",)))


def test_every_step_is_printed_with_its_rule_and_what_it_changed() -> None:
    told: list[str] = []
    printer = PassPrinter(told.append)
    schedule(softmax(), tiny(), trace=printer)
    schedule(softmax(), tiny(), ScheduleOptions(fusion="apollo"), trace=printer)
    schedule(chain(2, 8), small("a100-ssd", (6_000, 3_600), 3_000), trace=printer)
    with mock.patch("scheduler.fusion.test_tune_groups.schedule", lambda *a, **k: schedule(*a, **k, trace=printer)):
        tuned(attention(), Last())
    blocks = {name: [t for t in told if t.startswith(f"after {name}")] for name in (s.name for s in SEARCH)}
    assert all(blocks.values()), [name for name, texts in blocks.items() if not texts]
    rules = {step.name: step.rule for step in SEARCH}
    assert {name: texts[0].splitlines()[1] for name, texts in blocks.items()} == {
        name: f"  rule: {rule}" for name, rule in rules.items()
    }
    changed = {name: [line for text in texts for line in text.splitlines()[1:]] for name, texts in blocks.items()}
    for name, starts in {
        "partition_groups": "  joined top",
        "aggregate_rules": "  joined ",
        "partition_levels": "  host holds: ",
        "tune_groups": "  tile of ",
        "build_groups": "  built ",
        "compare_plans": "  fusion full: ",
    }.items():
        assert any(line.startswith(starts) for line in changed[name]), (name, changed[name])
    assert any(line.endswith(", taken") for line in changed["compare_plans"])


@pytest.mark.feature("A16")
def test_states_follow_each_other_and_nothing_alters_them() -> None:
    trace = RecordedTrace()
    schedule(softmax(), tiny(), trace=trace)
    states = [entry for entry in trace.entries if isinstance(entry.after, SearchState)]
    full = [entry for entry in states if entry.after.label == "fusion full"]
    assert all(later.before is earlier.after for earlier, later in pairwise(full))
    names = [step.name for step in SEARCH]
    assert [entry.step.name for entry in full] == sorted((e.step.name for e in full), key=names.index)
    assert [len(of.groups) for of in full[0].after.sets] == [4], "the first state still has every part by itself"


def ran(passes: tuple[str, ...] | None) -> tuple[list[str], list[str]]:
    """Names of the graph passes and of the steps that ran."""
    trace = RecordedTrace()
    schedule(softmax(), tiny(), ScheduleOptions(passes=passes), trace)
    names = list(dict.fromkeys(entry.step.name for entry in trace.entries))
    passes_ = [each.name for each in GRAPH_PASSES]
    return [n for n in names if n in passes_], [n for n in names if n not in passes_]


def test_a_recipe_names_graph_passes_and_steps() -> None:
    every, steps = ran(None)
    assert every == [each.name for each in GRAPH_PASSES]
    always = [each.name for each in GRAPH_PASSES if each.always]
    assert ran(()) == (always, steps)
    assert ran(("compose", "inline_scalars")) == (["compose", always[0], "inline_scalars", *always[1:]], steps)
    assert ran(("choose_layouts",)) == ([*always, "choose_layouts"], steps)
    fewer = [name for name in steps if name in REQUIRED]
    assert ran(REQUIRED) == (every, fewer)
    assert ran(("compose", *REQUIRED)) == ([always[0], "compose", *always[1:]], fewer)


def test_steps_alone_keep_both_graphs_of_an_optional_pass() -> None:
    e = {"s": 8, "n": 6}
    nodes = [
        ("m[s] = sum(n, x[s, n])", e),
        ("c[s, n] = x[s, n] - m[s]", e),
        ("v[s] = sum(n, c[s, n] * c[s, n])", e),
        ("y[s, n] = c[s, n] / sqrt(v[s] + 1.0)", e),
    ]
    graph, trace = make_graph({"x": (8, 6)}, nodes, ["y"]), RecordedTrace()
    steps = tuple(step.name for step in SEARCH)
    plan = schedule(graph, tiny(), ScheduleOptions(passes=steps), trace)
    assert any("nothing computed twice" in getattr(entry.after, "label", "") for entry in trace.entries)
    assert plan == schedule(graph, tiny())


@pytest.mark.parametrize("left_out", [step.name for step in SEARCH if not step.required])
def test_a_step_that_is_left_out_leaves_a_legal_plan(left_out: str) -> None:
    names, trace = tuple(step.name for step in SEARCH if step.name != left_out), RecordedTrace()
    assert illegal(schedule(softmax(), tiny(), ScheduleOptions(passes=names), trace)) == []
    assert left_out not in {entry.step.name for entry in trace.entries}


def test_a_step_that_is_needed_or_unknown_is_refused_with_the_reason() -> None:
    with pytest.raises(ConfigError, match="cannot do without legalize_groups: without it programs") as caught:
        schedule(softmax(), tiny(), ScheduleOptions(passes=("fuse_registers", "partition_levels", "build_groups")))
    assert "split_parts, aggregate_rules, partition_groups, local_search" in str(caught.value)
    with pytest.raises(ConfigError, match="no pass of schedule is called 'local_serch'") as caught:
        schedule(softmax(), tiny(), ScheduleOptions(passes=("local_serch",)))
    assert "Did you mean 'local_search'?" in str(caught.value)


def test_a_graph_pass_from_outside_runs() -> None:
    seen: list[int] = []

    def look(draft):
        seen.append(len(draft.graph.nodes))
        return draft

    with mock.patch.object(pipeline, "GRAPH_PASSES", (*GRAPH_PASSES, pipeline.GraphPass("look", "it looks", look))):
        schedule(softmax(), tiny(), ScheduleOptions(passes=("look",)))
    assert seen == [4]
