"""Edges explained: every figure is one that the search decided by, every edge that is not connected has its story."""

import json
from dataclasses import replace
from itertools import islice

import pytest
from replay.plans import MODELS, QUICK, graph
from report.explain.replays import edges, replayed, smaller
from scheduler.running import threaded

from tilec import zoo
from tilec.analysis.explain.edge import EdgeExplanation, explain_edge
from tilec.analysis.explain.replay import Replay, replay
from tilec.artifact import encode
from tilec.importer import import_model
from tilec.report.explain.edge_text import edge_text
from tilec.scheduler import schedule
from tilec.scheduler.pipeline import GRAPH_PASSES, SEARCH
from tilec.scheduler.plan_candidates import cheapest
from tilec.spec.recipe import ScheduleOptions

FAST = (
    ("mobilenet-v2", "avx2", {}),
    ("bert-base", "avx2", {"fusion": "register"}),
    ("bert-base", "avx2", {"fusion": "none"}),
    ("nerf-mlp", "a100", {"core": 16384}),
    ("nerf-mlp", "a100-host", {"dram": 20000}),
    ("nerf-mlp", "a100-host", {"closed": ("dram",)}),
)
SLOW = (
    *((name, device, {}) for name in MODELS for device in QUICK if (name, device, {}) not in FAST),
    ("bert-base", "ipu-mk2", {}),
    ("bert-base", "a100-host", {}),
    ("bert-base", "avx2", {"objective": "traffic"}),
    ("mobilenet-v2", "avx2", {"core": 32768}),
    ("mobilenet-v2", "avx2", {"core": 8192}),
)
CORE = ("partition_groups", "local_search", "join_reductions")
"""Steps that decide what a core's level holds together."""

ALL = [*FAST, *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW)]


def agrees(story: EdgeExplanation, found: Replay) -> None:
    """The story's reason is the search's, its decisive stage says the same, its figures are those of the reason."""
    assert story.reason == found.refusals[story.edge]
    decisive = next(each for each in reversed(story.steps) if each.step == story.decided_by)
    assert decisive.reason == story.reason
    assert decisive.rule
    numbers = story.reason.numbers
    if story.decided_by in CORE and story.reason.code == "slower":
        joined, best = story.joined, story.joined.best
        assert numbers["joined"] in (joined.bound, joined.rough, joined.hoped, best.objective)
        assert numbers["apart"] in (joined.apart, joined.pieces)
    if story.decided_by == "partition_levels" and story.reason.code == "slower":
        below = story.below
        assert numbers["joined"] == below.joined.objective
        assert abs(numbers["apart"] - sum(held.objective for held in below.apart)) <= 1
    if story.decided_by in CORE and story.reason.code == "length":
        assert story.joined.reason == type(story.reason)("->", "length", numbers)
    if story.decided_by in CORE and story.reason.code == "capacity":
        assert numbers["bytes"] in (story.joined.least_bytes, story.joined.best.prediction.held_bytes)
        assert numbers["capacity"] == story.joined.capacity_bytes


@pytest.mark.quick_cases("bert-base-avx2-options2", "nerf-mlp-a100-host-options5")
@pytest.mark.parametrize(("name", "device", "options"), ALL)
def test_every_edge_has_its_story(name, device, options):
    found = replayed(name, device, **options)
    told = set()
    for tensor, node in edges(found):
        story = explain_edge(found, tensor, node)
        group = next(group for group in found.plan.groups if story.edge in group.connect or story.reader == group.name)
        assert story.connected == group.connect.get(story.edge)
        if story.connected is None:
            agrees(story, found)
            told.add(story.edge)
        elif story.decided_by in CORE:
            assert story.connected != found.target.top or found.target.top == found.target.core_level
            assert len(story.joined.sides) == 2
        json.dumps(encode(story))
        assert edge_text(story).startswith(f"{story.edge}: ")
    assert told == set(found.refusals)


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("nerf-mlp", "a100"),
        *(pytest.param(n, d, marks=pytest.mark.slow) for n in MODELS for d in QUICK if (n, d) != ("nerf-mlp", "a100")),
    ],
)
def test_the_search_run_again_is_schedule(name, device):
    assert replayed(name, device).plan == schedule(graph(name), smaller(device, None))


WHOLE = tuple(each.name for each in (*GRAPH_PASSES, *SEARCH) if not getattr(each, "without", ""))
"""All passes and steps but those without which the graph is planned, too: reductions stay whole."""


def test_what_joining_would_take_is_enough():
    gpu = threaded("a100")
    found = replay(graph("nerf-mlp"), smaller(gpu, 16384), ScheduleOptions(passes=WHOLE))
    (edge,) = found.refusals
    story = explain_edge(found, *edge.split("->"))
    (capacity,) = [each for each in story.relaxations if each.what == "capacity"]
    assert (capacity.subject, capacity.before) == ("smem", 16384)
    assert 16384 < capacity.after <= 32768
    assert capacity.joined < capacity.apart
    assert edge not in replay(graph("nerf-mlp"), smaller(gpu, capacity.after), ScheduleOptions(passes=WHOLE)).refusals
    traffic = story.relaxations[0]
    assert (traffic.what, traffic.after, traffic.unit) == ("objective", "traffic", "bytes")
    options = ScheduleOptions(objective="traffic", passes=WHOLE)
    assert edge not in replay(graph("nerf-mlp"), smaller(gpu, 16384), options).refusals


def test_terms_add_up_to_what_the_search_minimised():
    found = replayed("mobilenet-v2", "avx2")
    for edge in islice(found.refusals, 4):
        joined = explain_edge(found, *edge.split("->")).joined
        if joined is None:
            continue
        for tile in (*(side.tile for side in joined.sides), *([joined.best] if joined.best else [])):
            of = tile.prediction
            assert of.picoseconds == tile.objective
            assert abs(of.picoseconds - of.launch - max(of.span, of.drawn)) <= 2
            assert of.task >= max(of.compute, of.stream)
        assert abs(joined.apart - sum(side.tile.objective for side in joined.sides)) <= len(joined.sides)


def test_a_cycle_names_the_groups_on_the_other_way():
    found = replayed("bert-base", "avx2", fusion="register")
    edge = next(reason.edge for reason in found.refusals.values() if reason.code == "cycle")
    story = explain_edge(found, *edge.split("->"))
    assert story.path[0] == story.producer
    assert story.path[-1] == story.reader
    assert len(story.path) > 2
    assert f"another way: {' -> '.join(story.path)}" in edge_text(story)


def test_a_whole_plan_with_less_fusion_that_costs_less_decides():
    found = replayed("nerf-mlp", "a100")
    connected = {edge for group in found.best.plan.groups for edge in group.connect}
    cheaper = tuple(map(replace, found.candidates))
    for candidate in cheaper:
        vars(candidate).update(cost=7 * (candidate.fusion != "none"), lower_bound=0)
    state = replace(found.state, candidates=cheaper, best=cheapest(cheaper))
    other = Replay(found.options, state, found.trace)
    assert other.best.fusion == "none"
    made = {node.name for group in other.best.plan.groups for node in group.nodes}
    connected = {edge for edge in connected if made.issuperset(edge.split("->"))}
    assert connected
    for edge in connected:
        story = explain_edge(other, *edge.split("->"))
        assert (story.connected, story.decided_by) == (None, "compare_plans")
        assert (story.reason.code, story.reason.numbers) == ("slower", {"joined": 7, "apart": 0})
        assert "is compared with those with less fusion" in edge_text(story)


def test_what_a_larger_level_below_a_core_is_predicted_to_gain():
    found = replayed("nerf-mlp", "a100-host", dram=20000)
    for edge in found.refusals:
        (capacity, *_) = explain_edge(found, *edge.split("->")).relaxations
        assert (capacity.what, capacity.subject, capacity.before) == ("capacity", "dram", 20000)
        assert capacity.after > 20000
        assert capacity.joined < capacity.apart


@pytest.mark.slow
@pytest.mark.parametrize("device", ["avx2", "a100"])
def test_every_edge_of_bert_base_itself(device, tmp_path):
    whole = import_model(zoo.export("bert-base", tmp_path / "m.onnx", form="decomposed")).graph
    found = replay(whole, smaller(device, None), ScheduleOptions())
    for tensor, node in edges(found):
        story = explain_edge(found, tensor, node, relax=False)
        if story.connected is None:
            agrees(story, found)
